"""Events, export and import through the API."""

from __future__ import annotations

import json

import pytest
from asgiref.sync import sync_to_async
from django.test import AsyncClient

from traces_app.models import JournalEntry

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
async def session(admin) -> str:
    """A session that ran two commands, one of them allowed by a person."""
    session = (await admin.session(approval_mode="allow-all"))["id"]
    await admin.task(session, "$ printf needle\n$ printf hay\nthen\nsay done")
    await admin.until_status(session, "idle")
    return session


async def events(admin, session: str, query: str = "") -> list:
    return (await admin.get(f"sessions/{session}/events?{query}"))["events"]


async def test_events_come_in_order_without_a_gap(admin, session) -> None:
    found = await events(admin, session)

    assert [event["seq"] for event in found] == list(range(1, len(found) + 1))
    assert found[0]["message"]["type"] == "session_meta"
    assert {len(event["hash"]) for event in found} == {64}
    assert {event["segment"] for event in found} == {1}


async def test_pages_join_without_loss(admin, session) -> None:
    whole = await events(admin, session)

    joined, after = [], 0
    while after is not None:
        path = f"sessions/{session}/events?limit=3&after={after}"
        page = await admin.get(path)
        joined += page["events"]
        after = page["next"]

    assert joined == whole


async def test_last_page_has_no_next(admin, session) -> None:
    page = await admin.get(f"sessions/{session}/events?limit=1000")

    assert page["next"] is None
    after = page["events"][-1]["seq"]
    rest = await admin.get(f"sessions/{session}/events?after={after}")
    assert rest == {"events": [], "next": None}


async def test_events_are_filtered(admin, session) -> None:
    calls = await events(admin, session, "type=tool_call")
    found = await events(admin, session, "q=needle&type=tool_call_output")
    allowed = await events(admin, session, "decision=allow")
    of_tool = await events(admin, session, "tool=exec_command&type=tool_call")
    event_messages = await events(admin, session, "type=event_msg")

    assert len(calls) == len(of_tool) == len(allowed) == 2
    assert [e["message"]["payload"]["output"] for e in found] == ["needle"]
    assert {e["message"]["type"] for e in event_messages} == {"event_msg"}
    assert await events(admin, session, "type=no_such_kind") == []


@pytest.mark.parametrize(
    "query", ["limit=0", "limit=1001", "after=-1", f"after={2**63}", "q=%00", "after=x"]
)
async def test_wrong_query_gets_422(admin, session, error, query) -> None:
    response = await admin("GET", f"sessions/{session}/events?{query}")

    assert response.status_code == 422
    error(response)


async def exported(admin, session: str) -> bytes:
    response = await admin("GET", f"sessions/{session}/trace.jsonl")
    assert response.status_code == 200
    return b"".join([chunk async for chunk in response])


async def imported(admin, body: bytes, query: str = "", **more):
    more = {"content_type": "text/plain"} | more
    return await admin("POST", f"projects/default/traces{query}", body, **more)


def of_another_session(record: bytes, session: str) -> bytes:
    return record.replace(session.encode(), b"session-2020-01-01-00-00-00-00000000")


async def test_export_holds_every_event_as_it_was_written(admin, session) -> None:
    record = await exported(admin, session)

    lines = record.decode().splitlines()
    stored = await events(admin, session)
    assert [json.loads(line) for line in lines] == [e["message"] for e in stored]


async def test_export_is_an_attachment(admin, session) -> None:
    response = await admin("GET", f"sessions/{session}/trace.jsonl")

    assert response["Content-Type"] == "application/x-ndjson"
    assert f'filename="{session}.jsonl"' in response["Content-Disposition"]
    response.close()


async def test_imported_record_comes_back_byte_for_byte(admin, session) -> None:
    record = of_another_session(await exported(admin, session), session)
    record = record.replace(b'{"timestamp"', b'{ "extra": [1.50], "timestamp"')

    response = await imported(admin, record)

    assert response.status_code == 201
    answer = response.json()
    assert answer["events"] == len(record.splitlines())
    assert await exported(admin, answer["session_id"]) == record
    found = await events(admin, answer["session_id"], "q=needle")
    assert found


async def test_record_that_is_there_already_gets_409(admin, session, error) -> None:
    response = await imported(admin, await exported(admin, session))

    assert response.status_code == 409
    assert error(response)["details"] == {"session_id": session}


async def test_damaged_line_is_named_and_nothing_imported(
    admin, session, error
) -> None:
    record = of_another_session(await exported(admin, session), session)
    lines = record.splitlines(keepends=True)
    lines[2] = b'{"torn\n'

    refused = await imported(admin, b"".join(lines))

    assert refused.status_code == 422
    (problem,) = error(refused)["details"]
    assert problem["line"] == 3
    assert problem["reason"]
    new_id = "session-2020-01-01-00-00-00-00000000"
    assert (await admin("GET", f"sessions/{new_id}/events")).status_code == 404

    marked = await imported(admin, b"".join(lines), "?damaged=mark")
    assert (marked.status_code, marked.json()["damaged"]) == (201, 1)
    assert (await events(admin, new_id))[2]["message"]["payload"]["line"] == 3


@pytest.mark.parametrize("content_type", ["", "application/json", "text/plain"])
async def test_empty_import_gets_422(admin, error, content_type) -> None:
    response = await imported(admin, b"", content_type=content_type)

    assert response.status_code == 422
    error(response)


async def test_import_by_cookie_reads_no_form_out_of_the_body(
    supervisor, project_admin, error
) -> None:
    client = AsyncClient(enforce_csrf_checks=True)
    await client.aforce_login(project_admin)
    client.cookies["csrftoken"] = "a" * 32

    response = await client.post(
        "/api/v1/projects/default/traces",
        b"csrfmiddlewaretoken=x",
        content_type="application/x-www-form-urlencoded",
        headers={"X-CSRFToken": "a" * 32},
    )

    assert response.status_code == 422
    assert error(response)["details"][0]["line"] == 1


@pytest.mark.parametrize("role", ["viewer", "operator", "approver", "config_editor"])
async def test_export_and_import_are_for_auditors(
    admin, session, caller, make_member, error, role
) -> None:
    someone = await caller(await sync_to_async(make_member)("someone", role))

    for response in (
        await someone("GET", f"sessions/{session}/trace.jsonl"),
        await imported(someone, b"{}"),
    ):
        assert response.status_code == 403
        error(response)
    assert await events(someone, session)


async def test_reading_is_noted_in_the_journal(admin, session) -> None:
    await events(admin, session)

    entries = JournalEntry.objects.filter(session_id=session)
    assert [entry.person async for entry in entries] == ["paula"]
