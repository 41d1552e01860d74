"""What people do: a POST each, for those who may, answered for browsers and htmx."""

from __future__ import annotations

import pytest
from asgiref.sync import sync_to_async

from sessions_app import runtime
from sessions_app.models import ApprovalRequest, QueuedMessage, Session
from tests.sessions_app.views.waiting import address, cards, until

pytestmark = pytest.mark.django_db(transaction=True)
HTMX = {"HX-Request": "true"}
ACTIONS = [
    "send/",
    "stop/",
    "decide/",
    "mode/",
    "draft/",
    "recall/",
    "retry/",
    "kill/",
    "input/",
    "rename/",
    "archive/",
]


@pytest.fixture
async def waiting(session, client) -> Session:
    """A session with two calls that wait."""
    await client.post(address(session, "send/"), {"text": "$ echo a\n$ echo b"})
    await cards(session, 2)
    return session


def answer_to(row: ApprovalRequest, decision: str, **more: str) -> dict[str, str]:
    return {
        "decision": decision,
        "tool_call_id": row.tool_call_id,
        "attempt": str(row.attempt),
        "arguments_sha256": row.arguments_sha256,
        **more,
    }


@pytest.mark.parametrize("action", ACTIONS)
async def test_action_takes_only_post(session, client, action):
    response = await client.get(address(session, action))

    assert response.status_code == 405


@pytest.mark.parametrize("action", ACTIONS)
async def test_action_asks_who_is_not_logged_in_to_log_in(
    session, async_client, action
):
    response = await async_client.post(address(session, action))

    assert response.status_code == 303
    assert response["Location"].startswith("/login/?next=")


async def test_page_of_somebody_logged_out_is_led_to_the_login(session, async_client):
    response = await async_client.post(address(session, "send/"), headers=HTMX)

    assert response.status_code == 401
    assert response["HX-Redirect"].startswith("/login/")


@pytest.mark.parametrize("action", ACTIONS)
async def test_foreign_session_does_not_exist(foreign_session, client, action):
    response = await client.post(address(foreign_session, action))

    assert response.status_code == 404


@pytest.mark.parametrize("action", ACTIONS)
async def test_session_is_not_found_under_another_project(session, client, action):
    response = await client.post(f"/p/other/s/{session.pk}/{action}")

    assert response.status_code == 404


@pytest.mark.parametrize("action", ACTIONS)
async def test_viewer_may_do_nothing(session, viewer, log_in, action):
    client = await log_in(viewer)

    response = await client.post(address(session, action))

    assert response.status_code == 403


async def test_operator_may_not_decide(waiting, operator, log_in):
    client = await log_in(operator)
    row = (await cards(waiting, 2))[0]

    response = await client.post(address(waiting, "decide/"), answer_to(row, "allow"))

    assert response.status_code == 403
    assert len(await cards(waiting, 2)) == 2


async def test_sent_message_starts_a_task_and_leads_back_to_the_chat(session, client):
    response = await client.post(address(session, "send/"), {"text": "say hi"})

    assert response.status_code == 303
    assert response["Location"] == address(session)
    assert (await until(session)).title == "say hi"


async def test_sent_message_needs_no_answer_in_an_open_page(session, client):
    response = await client.post(
        address(session, "send/"), {"text": "say hi"}, headers=HTMX
    )

    assert (response.status_code, response.content) == (204, b"")


async def test_button_of_an_answer_sends_its_message(session, client):
    await client.post(
        address(session, "send/"), {"text": "half a thou", "suggestion": "say yes"}
    )

    assert (await until(session)).title == "say yes"


async def test_message_sent_meanwhile_waits_and_can_be_taken_back(waiting, client):
    await client.post(address(waiting, "send/"), {"text": "and <then>"})
    queued = await QueuedMessage.objects.aget(session=waiting)

    response = await client.post(
        address(waiting, "recall/"), {"queued_id": str(queued.pk)}, headers=HTMX
    )

    assert response.status_code == 200
    assert 'data-text="and &lt;then&gt;"' in response.content.decode()
    assert not await QueuedMessage.objects.aexists()


async def test_message_taken_back_without_a_script_is_the_draft(waiting, client):
    await client.post(address(waiting, "send/"), {"text": "later"})
    queued = await QueuedMessage.objects.aget(session=waiting)

    await client.post(address(waiting, "recall/"), {"queued_id": str(queued.pk)})

    assert (await Session.objects.aget(pk=waiting.pk)).draft == "later"


async def test_empty_message_is_refused_on_a_page_that_says_why(session, client):
    response = await client.post(address(session, "send/"), {"text": "  "})

    page = response.content.decode()
    assert response.status_code == 422
    assert "The message is empty" in page
    assert address(session) in page


async def test_refusal_in_an_open_page_is_a_notice(session, client):
    response = await client.post(address(session, "send/"), {"text": ""}, headers=HTMX)

    assert response.status_code == 422
    assert response.content.decode().startswith('<div class="notice"')


async def test_refused_message_keeps_its_text(make_session, client):
    session = await make_session()
    await runtime.archive(session.pk, True)

    response = await client.post(address(session, "send/"), {"text": "long <work>"})

    assert response.status_code == 409
    assert "long &lt;work&gt;</textarea>" in response.content.decode()


async def test_decision_is_stored_with_its_reason_and_its_way(waiting, client):
    first, second = await cards(waiting, 2)

    allowed = await client.post(
        address(waiting, "decide/"), answer_to(first, "allow", via="key"), headers=HTMX
    )
    denied = await client.post(
        address(waiting, "decide/"), answer_to(second, "deny", reason="not now")
    )

    assert "Allowed by you" in allowed.content.decode()
    assert denied.status_code == 303
    await until(waiting)
    await first.arefresh_from_db()
    await second.arefresh_from_db()
    assert (first.decision, first.via, first.decided_by) == ("allow", "key", "paula")
    assert (second.decision, second.via, second.reason) == ("deny", "form", "not now")


async def test_same_answer_again_is_no_conflict(waiting, client):
    row = (await cards(waiting, 2))[0]
    await client.post(address(waiting, "decide/"), answer_to(row, "deny"))

    response = await client.post(address(waiting, "decide/"), answer_to(row, "deny"))

    assert response.status_code == 303


async def test_opposite_answer_is_told_who_was_first(waiting, client, approver, log_in):
    row = (await cards(waiting, 2))[0]
    await client.post(address(waiting, "decide/"), answer_to(row, "deny"))
    other = await log_in(approver)

    late = await other.post(address(waiting, "decide/"), answer_to(row, "allow"))

    page = late.content.decode()
    assert late.status_code == 409
    assert "paula" in page
    assert "deny" in page
    assert "<textarea" not in page


async def test_call_that_is_not_the_one_shown_is_not_decided(waiting, client):
    row = (await cards(waiting, 2))[0]
    answer = answer_to(row, "allow") | {"arguments_sha256": "0" * 64}

    response = await client.post(address(waiting, "decide/"), answer)

    assert response.status_code == 409
    assert len(await cards(waiting, 2)) == 2


async def test_answer_that_is_none_is_refused(waiting, client):
    row = (await cards(waiting, 2))[0]

    response = await client.post(address(waiting, "decide/"), answer_to(row, "maybe"))

    assert response.status_code == 422


async def test_unknown_call_does_not_exist(session, client):
    response = await client.post(
        address(session, "decide/"), {"tool_call_id": "nope", "decision": "allow"}
    )

    assert response.status_code == 404


async def test_stop_ends_what_waits(waiting, client):
    response = await client.post(address(waiting, "stop/"))

    assert response.status_code == 303
    await until(waiting)
    assert await sync_to_async(runtime.pending_requests)(waiting.pk) == []


async def test_stop_of_an_idle_session_does_nothing(session, client):
    response = await client.post(address(session, "stop/"), headers=HTMX)

    assert response.status_code == 204


async def test_mode_counts_at_once_for_what_waits(waiting, client):
    await client.post(address(waiting, "mode/"), {"approval_mode": "deny-all"})

    row = await until(waiting)
    assert row.approval_mode == "deny-all"


async def test_unknown_mode_is_refused(session, client):
    response = await client.post(address(session, "mode/"), {"approval_mode": "yolo"})

    assert response.status_code == 422


async def test_operator_may_tighten_a_mode_but_not_loosen_it(session, operator, log_in):
    client = await log_in(operator)

    loosened = await client.post(
        address(session, "mode/"), {"approval_mode": "allow-all"}
    )
    tightened = await client.post(
        address(session, "mode/"), {"approval_mode": "deny-all"}
    )

    assert (loosened.status_code, tightened.status_code) == (403, 303)


async def test_draft_is_kept_until_the_message_is_sent(session, client):
    await client.post(address(session, "draft/"), {"text": "half"}, headers=HTMX)
    kept = (await Session.objects.aget(pk=session.pk)).draft

    await client.post(address(session, "send/"), {"text": "say whole"})

    assert kept == "half"
    assert (await until(session)).draft == ""


async def test_session_is_renamed_and_archived_and_brought_back(session, client):
    await client.post(address(session, "rename/"), {"title": " New name "})
    await client.post(address(session, "archive/"), {"archived": "yes"})
    away = await Session.objects.aget(pk=session.pk)
    await client.post(address(session, "archive/"), {"archived": "no"})
    back = await Session.objects.aget(pk=session.pk)

    assert (away.title, away.is_archived, back.is_archived) == ("New name", True, False)


async def test_action_leads_back_to_the_page_it_was_on(session, client):
    response = await client.post(
        address(session, "rename/"), {"title": "x", "next": "/p/default/sessions/"}
    )

    assert response["Location"] == "/p/default/sessions/"


@pytest.mark.parametrize(
    "away", ["https://evil.example/", "//evil.example", "javascript:x"]
)
async def test_action_never_leads_to_another_site(session, client, away):
    response = await client.post(
        address(session, "rename/"), {"title": "x", "next": away}
    )

    assert response["Location"] == address(session)


async def test_person_can_type_into_a_command(make_session, client):
    session = await make_session("allow-all")
    cmd = 'call exec_command {"cmd": "read x; echo got $x > got", "yield_time_ms": 250}'
    await client.post(address(session, "send/"), {"text": cmd})
    await until(session)
    (process,) = await runtime.processes(session.pk)

    response = await client.post(
        address(session, "input/"),
        {"process_id": process["process_id"], "chars": "hello"},
        headers=HTMX,
    )

    assert response.status_code == 204


async def test_command_can_be_killed(make_session, client):
    session = await make_session("allow-all")
    cmd = 'call exec_command {"cmd": "sleep 600", "yield_time_ms": 250}'
    await client.post(address(session, "send/"), {"text": cmd})
    await until(session)
    (process,) = await runtime.processes(session.pk)

    await client.post(address(session, "kill/"), {"process_id": process["process_id"]})

    (after,) = await runtime.processes(session.pk)
    assert not after["running"]


async def test_unknown_command_does_not_exist(session, client):
    response = await client.post(address(session, "kill/"), {"process_id": "proc-0"})

    assert response.status_code == 404
