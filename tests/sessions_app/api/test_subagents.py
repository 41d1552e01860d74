"""Subagents through the API: one list of what waits, one mode, a session each."""

from __future__ import annotations

import json

import pytest

pytestmark = pytest.mark.django_db(transaction=True)


def delegate(prompt: str) -> str:
    return f"call run_subagent {json.dumps({'prompt': prompt})}"


@pytest.fixture
async def parent(admin) -> str:
    """A session whose subagent has a pending call."""
    session = (await admin.session(approval_mode="always-ask"))["id"]
    await admin.task(session, delegate("$ echo hi\nthen\nsay done"))
    own = await admin.card(session)
    await decide(admin, own)

    async def is_asked() -> bool:
        cards = await admin.get(f"sessions/{session}/approvals?status=pending")
        return any(card["session"] != session for card in cards)

    await admin.until(is_asked)
    return session


async def decide(caller, card, decision: str = "allow"):
    path = f"sessions/{card['session']}/approvals/{card['tool_call_id']}"
    response = await caller("POST", path, {"decision": decision})
    assert response.status_code == 200, response.content
    return response.json()


async def test_the_list_of_a_parent_includes_what_its_subagent_asks(admin, parent):
    (card,) = await admin.get(f"sessions/{parent}/approvals?status=pending")

    assert card["session"] != parent
    assert card["origin"] == [card["session"]]
    assert (card["name"], card["permission"]) == ("exec_command", "rw")
    assert await admin.get(f"sessions/{card['session']}/approvals?status=pending") == [
        card
    ]
    assert await admin.get("approvals?status=pending") == [card]


async def test_both_read_waiting_until_the_decision(admin, parent):
    card = await admin.card(parent)
    child = await admin.get(f"sessions/{card['session']}")
    assert (child["parent"], child["status"]) == (parent, "waiting")
    assert (await admin.get(f"sessions/{parent}"))["status"] == "waiting"

    await decide(admin, card)

    await admin.until_status(parent, "idle")
    page = await admin.get(f"sessions/{parent}/events?type=tool_call_output")
    assert page["events"][-1]["message"]["payload"]["output"] == "done"


async def test_the_list_of_sessions_names_the_parent(admin, parent):
    page = await admin.get("projects/default/sessions")

    parents = {session["id"]: session["parent"] for session in page["sessions"]}
    card = await admin.card(parent)
    assert parents == {parent: None, card["session"]: parent}


async def test_mode_and_tasks_of_a_subagent_are_its_parents(admin, parent, error):
    child = (await admin.card(parent))["session"]

    refused = [
        await admin("PATCH", f"sessions/{child}", {"approval_mode": "deny-all"}),
        await admin("POST", f"sessions/{child}/tasks", {"text": "say hi"}),
    ]

    assert [response.status_code for response in refused] == [409, 409]
    assert {error(response)["code"] for response in refused} == {"follows_parent"}


async def test_a_decision_on_the_parent_does_not_reach_the_subagents_call(
    admin, parent
):
    card = await admin.card(parent)
    path = f"sessions/{parent}/approvals/{card['tool_call_id']}"

    response = await admin("POST", path, {"decision": "allow"})

    assert response.status_code == 404


async def test_deleting_the_parent_deletes_the_subagent(admin, parent):
    child = (await admin.card(parent))["session"]

    response = await admin("DELETE", f"sessions/{parent}")

    assert response.status_code == 204
    for session in (parent, child):
        assert (await admin("GET", f"sessions/{session}")).status_code == 404
        events = await admin.get(f"sessions/{session}/events")
        assert events["events"]  # the record stays
    assert await admin.get("approvals?status=pending") == []


async def test_a_stranger_sees_neither(admin, parent, caller, stranger):
    child = (await admin.card(parent))["session"]
    stan = await caller(stranger)

    for path in (f"sessions/{child}", f"sessions/{child}/approvals"):
        assert (await stan("GET", path)).status_code == 404
