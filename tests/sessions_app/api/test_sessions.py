"""Sessions through the API: make, list, change, run, stop, delete."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from asgiref.sync import sync_to_async

from sessions_app.models import Session
from sessions_app.runtime import configs

pytestmark = pytest.mark.django_db(transaction=True)

SESSION_ID = re.compile(r"session-\d{4}(-\d\d){5}-[0-9a-f]{8}")


@pytest.fixture
async def oskar(supervisor, caller, operator):
    return await caller(operator)


@pytest.fixture
async def anna(supervisor, caller, approver):
    return await caller(approver)


async def test_session_is_made_with_the_project_defaults(oskar) -> None:
    session = await oskar.session()

    assert SESSION_ID.fullmatch(session["id"])
    assert session["project"] == "default"
    assert session["agent"] == "default_agent"
    assert (session["provider"], session["model_id"]) == ("demo", "demo")
    assert session["approval_mode"] == "always-ask"
    assert session["status"] == "idle"
    assert session["thinking_level"] is None
    assert Path(session["workspace"]).is_dir()
    assert await oskar.get(f"sessions/{session['id']}") == session


async def test_session_is_made_as_asked(anna) -> None:
    session = await anna.session(
        model="demo/demo-text",
        approval_mode="allow-all",
        title="Mine",
        thinking_level="high",
    )

    assert (session["model_id"], session["title"]) == ("demo-text", "Mine")
    assert (session["approval_mode"], session["thinking_level"]) == (
        "allow-all",
        "high",
    )


@pytest.mark.parametrize(
    "body",
    [
        {"agent": "nobody"},
        {"model": "demo/none"},
        {"model": "demo"},
        {"workspace": "/etc"},
        {"workspace": "~nobody-of-this-name/x"},
        {"workspace": "../../up"},
        {"workspace": "x" * 300},
    ],
)
async def test_what_the_project_does_not_have_gets_422(oskar, error, body) -> None:
    response = await oskar("POST", "projects/default/sessions", body)

    assert response.status_code == 422
    error(response)


@pytest.mark.parametrize("mode", ["read-only", "allow-all"])
async def test_mode_above_the_default_needs_the_right_to_loosen(
    oskar, anna, mode
) -> None:
    path, body = "projects/default/sessions", {"approval_mode": mode}

    assert (await oskar("POST", path, body)).status_code == 403
    assert (await anna("POST", path, body)).status_code == 201


@pytest.mark.parametrize("mode", ["deny-all", "always-ask"])
async def test_mode_up_to_the_default_needs_no_more(oskar, mode) -> None:
    assert (await oskar.session(approval_mode=mode))["approval_mode"] == mode


async def test_default_of_the_project_counts(oskar, project) -> None:
    text = "approval: {mode: allow-all}\n"
    await sync_to_async(configs.save)(project, text, base_version=1)

    session = await oskar.session()

    assert session["approval_mode"] == "allow-all"


async def test_operator_makes_stricter_but_not_more_permissive(oskar, error) -> None:
    path = f"sessions/{(await oskar.session())['id']}"

    stricter = await oskar("PATCH", path, {"approval_mode": "deny-all"})
    looser = await oskar("PATCH", path, {"approval_mode": "always-ask"})

    assert stricter.json()["approval_mode"] == "deny-all"
    assert looser.status_code == 403
    error(looser)
    assert (await oskar.get(path))["approval_mode"] == "deny-all"


async def test_refused_part_of_a_change_leaves_all_as_it_was(oskar) -> None:
    path = f"sessions/{(await oskar.session(title='Old'))['id']}"

    body = {"approval_mode": "allow-all", "title": "New", "archived": True}
    response = await oskar("PATCH", path, body)

    assert response.status_code == 403
    session = await oskar.get(path)
    assert (session["title"], session["archived"]) == ("Old", False)


async def test_title_and_archive_are_changed(oskar) -> None:
    path = f"sessions/{(await oskar.session())['id']}"

    response = await oskar("PATCH", path, {"title": "New", "archived": True})

    assert (response.json()["title"], response.json()["archived"]) == ("New", True)
    assert (await oskar("PATCH", path, {})).json() == response.json()


async def test_viewer_reads_and_changes_nothing(oskar, caller, viewer, error) -> None:
    vera = await caller(viewer)
    session = await oskar.session()
    path = f"sessions/{session['id']}"

    assert await vera.get(path) == session
    for method, where, body in [
        ("PATCH", path, {"title": "x"}),
        ("PATCH", path, {"approval_mode": "deny-all"}),
        ("DELETE", path, None),
        ("POST", f"{path}/tasks", {"text": "hi"}),
        ("POST", f"{path}/interrupt", None),
        ("DELETE", f"{path}/processes/proc-00000000", None),
    ]:
        response = await vera(method, where, body)
        assert response.status_code == 403, where
        error(response)


async def test_session_of_another_project_gets_404(oskar, caller, stranger) -> None:
    stan = await caller(stranger)
    path = f"sessions/{(await oskar.session())['id']}"

    for method, where in [
        ("GET", path),
        ("PATCH", path),
        ("DELETE", path),
        ("POST", f"{path}/tasks"),
        ("POST", f"{path}/interrupt"),
        ("GET", f"{path}/approvals"),
        ("POST", f"{path}/approvals/call_0"),
        ("GET", f"{path}/events"),
        ("GET", f"{path}/stream"),
        ("GET", f"{path}/trace.jsonl"),
        ("GET", f"{path}/processes"),
    ]:
        bodies = {"PATCH": {"title": "x"}, "POST": {"text": "x"}}
        body = {"decision": "deny"} if "approvals/" in where else bodies.get(method)
        assert (await stan(method, where, body)).status_code == 404, where


async def test_list_is_paged_newest_first(oskar) -> None:
    made = sorted([(await oskar.session())["id"] for _ in range(3)], reverse=True)

    first = await oskar.get("projects/default/sessions?limit=2")
    rest = await oskar.get(f"projects/default/sessions?limit=2&after={first['next']}")

    assert [session["id"] for session in first["sessions"]] == made[:2]
    assert [session["id"] for session in rest["sessions"]] == made[2:]
    assert rest["next"] is None


async def test_list_is_filtered_by_status_and_words(oskar) -> None:
    mine = (await oskar.session(title="Fix the Upload"))["id"]
    other = (await oskar.session(title="100% done"))["id"]
    await Session.objects.filter(pk=other).aupdate(status="waiting")

    async def ids(query: str) -> list[str]:
        page = await oskar.get(f"projects/default/sessions?{query}")
        return [session["id"] for session in page["sessions"]]

    assert await ids("q=upload") == [mine]
    assert await ids("q=100%25") == [other]
    assert await ids("status=waiting") == [other]
    assert await ids(f"q={mine[-8:]}") == [mine]
    response = await oskar("GET", "projects/default/sessions?status=asleep")
    assert response.status_code == 422


@pytest.mark.parametrize("query", ["limit=0", "limit=201", "limit=x", "q=%00"])
async def test_wrong_query_gets_422(oskar, error, query) -> None:
    response = await oskar("GET", f"projects/default/sessions?{query}")

    assert response.status_code == 422
    error(response)


async def test_task_runs_to_its_end(anna) -> None:
    session = (await anna.session(approval_mode="allow-all"))["id"]

    body = {"text": "$ printf hello\nthen\nsay done"}
    response = await anna("POST", f"sessions/{session}/tasks", body)

    assert response.status_code == 202
    assert response.json()["status"] != "idle"
    await anna.until_status(session, "idle")
    kinds = await anna.get(f"sessions/{session}/events?type=tool_call_output")
    assert [e["message"]["payload"]["output"] for e in kinds["events"]] == ["hello"]
    assert (await anna.get(f"sessions/{session}"))["title"] == "$ printf hello"


async def test_second_task_is_busy_unless_queued(anna, error) -> None:
    session = (await anna.session())["id"]
    await anna.task(session, "$ true")
    await anna.card(session)

    refused = await anna("POST", f"sessions/{session}/tasks", {"text": "say more"})

    assert refused.status_code == 409
    assert error(refused)["code"] == "busy"
    await anna.task(session, "say more", queue=True)
    await anna("POST", f"sessions/{session}/interrupt")


async def test_empty_message_gets_422(oskar, error) -> None:
    session = (await oskar.session())["id"]

    response = await oskar("POST", f"sessions/{session}/tasks", {"text": "  "})

    assert response.status_code == 422
    error(response)


async def test_interrupt_stops_what_waits(anna) -> None:
    session = (await anna.session())["id"]
    await anna.task(session, "$ true")
    await anna.card(session)

    response = await anna("POST", f"sessions/{session}/interrupt")

    assert response.status_code == 202
    await anna.until_status(session, "idle")
    assert await anna.get(f"sessions/{session}/approvals?status=pending") == []


async def test_interrupt_of_an_idle_session_does_nothing(oskar) -> None:
    session = (await oskar.session())["id"]
    before = await oskar.get(f"sessions/{session}/events")

    response = await oskar("POST", f"sessions/{session}/interrupt")

    assert response.status_code == 202
    assert await oskar.get(f"sessions/{session}/events") == before


async def test_deleted_session_is_gone_but_its_record_stays(oskar) -> None:
    session = (await oskar.session())["id"]

    response = await oskar("DELETE", f"sessions/{session}")

    assert (response.status_code, response.content) == (204, b"")
    assert (await oskar("GET", f"sessions/{session}")).status_code == 404
    assert (await oskar.get("projects/default/sessions"))["sessions"] == []
    events = (await oskar.get(f"sessions/{session}/events"))["events"]
    assert events[0]["message"]["type"] == "session_meta"


async def test_background_command_is_listed_and_killed(anna, error) -> None:
    session = (await anna.session(approval_mode="allow-all"))["id"]
    call = 'call exec_command {"cmd": "sleep 60", "yield_time_ms": 250}'
    await anna.task(session, call)
    await anna.until_status(session, "idle")
    (process,) = await anna.get(f"sessions/{session}/processes")
    path = f"sessions/{session}/processes/{process['process_id']}"
    assert (process["cmd"], process["running"]) == ("sleep 60", True)

    assert (await anna("DELETE", path)).status_code == 204

    async def has_ended() -> bool:
        rows = await anna.get(f"sessions/{session}/processes")
        return not any(row["running"] for row in rows)

    await anna.until(has_ended)
    unknown = await anna("DELETE", f"sessions/{session}/processes/proc-ffffffff")
    assert unknown.status_code == 404
    error(unknown)
