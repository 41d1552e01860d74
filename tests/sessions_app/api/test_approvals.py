"""Approvals through the API: what waits, and the one answer to it."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
async def anna(supervisor, caller, approver):
    return await caller(approver)


@pytest.fixture
async def waiting(anna) -> str:
    """A session with one pending call."""
    session = (await anna.session())["id"]
    await anna.task(session, "$ printf hi")
    await anna.card(session)
    return session


async def test_pending_request_says_all_a_person_must_know(anna, waiting) -> None:
    card = await anna.card(waiting)

    assert card["session"] == waiting
    assert (card["name"], card["permission"]) == ("exec_command", "rw")
    assert card["arguments"] == '{"cmd": "printf hi"}'
    assert card["workdir"] == (await anna.get(f"sessions/{waiting}"))["workspace"]
    assert (card["status"], card["decision"]) == ("pending", None)
    assert (card["attempt"], card["origin"]) == (1, [])
    assert len(card["arguments_sha256"]) == 64
    assert await anna.get("approvals?status=pending") == [card]
    assert (await anna.get(f"sessions/{waiting}"))["status"] == "waiting"


async def test_decision_lets_the_turn_go_on(anna, waiting) -> None:
    card = await anna.card(waiting)
    path = f"sessions/{waiting}/approvals/{card['tool_call_id']}"

    body = {"decision": "allow", "arguments_sha256": card["arguments_sha256"]}
    response = await anna("POST", path, body)

    assert response.status_code == 200
    stored = response.json()
    assert (stored["status"], stored["decision"]) == ("decided", "allow")
    assert (stored["decided_by"], stored["via"]) == ("anna", "api")
    await anna.until_status(waiting, "idle")
    page = await anna.get(f"sessions/{waiting}/events?type=approval_decision")
    (event,) = page["events"]
    payload = event["message"]["payload"]
    assert (payload["decision"], payload["source"]) == ("allow", "user")
    assert (payload["via"], payload["decided_by"]) == ("api", "anna")


async def test_reason_of_a_denial_reaches_the_model(anna, waiting) -> None:
    card = await anna.card(waiting)
    path = f"sessions/{waiting}/approvals/{card['tool_call_id']}"

    await anna("POST", path, {"decision": "deny", "reason": "use rm -i"})

    await anna.until_status(waiting, "idle")
    page = await anna.get(f"sessions/{waiting}/events?type=tool_call_output")
    output = page["events"][0]["message"]["payload"]["output"]
    assert output == "Tool call denied by user.\nReason: use rm -i"


async def test_same_answer_again_is_fine_and_the_opposite_is_not(
    anna, waiting, error
) -> None:
    card = await anna.card(waiting)
    path = f"sessions/{waiting}/approvals/{card['tool_call_id']}"
    first = await anna("POST", path, {"decision": "deny", "reason": "no"})

    again = await anna("POST", path, {"decision": "deny"})
    opposite = await anna("POST", path, {"decision": "allow"})

    assert (again.status_code, again.json()) == (200, first.json())
    assert opposite.status_code == 409
    assert error(opposite)["code"] == "already_decided"
    details = error(opposite)["details"]
    assert (details["decision"], details["decided_by"]) == ("deny", "anna")


async def test_decision_about_other_arguments_is_refused(anna, waiting, error) -> None:
    card = await anna.card(waiting)
    path = f"sessions/{waiting}/approvals/{card['tool_call_id']}"

    body = {"decision": "allow", "arguments_sha256": "0" * 64}
    response = await anna("POST", path, body)

    assert response.status_code == 409
    assert error(response)["code"] == "arguments_changed"
    assert (await anna.card(waiting))["decision"] is None


@pytest.mark.parametrize("call_id", ["none", "a%2Fb", "%00", "x" * 300])
async def test_unknown_call_gets_404(anna, waiting, error, call_id) -> None:
    path = f"sessions/{waiting}/approvals/{call_id}"

    response = await anna("POST", path, {"decision": "deny"})

    assert response.status_code == 404
    error(response)


@pytest.mark.parametrize("decision", ["maybe", "", None, True])
async def test_other_decision_gets_422(anna, waiting, error, decision) -> None:
    card = await anna.card(waiting)
    path = f"sessions/{waiting}/approvals/{card['tool_call_id']}"

    response = await anna("POST", path, {"decision": decision})

    assert response.status_code == 422
    error(response)


async def test_operator_decides_nothing(waiting, anna, caller, operator) -> None:
    oskar = await caller(operator)
    card = await oskar.card(waiting)
    path = f"sessions/{waiting}/approvals/{card['tool_call_id']}"

    response = await oskar("POST", path, {"decision": "deny"})

    assert response.status_code == 403
    assert (await anna.card(waiting))["decision"] is None


async def test_decided_requests_stay_readable(anna, waiting) -> None:
    card = await anna.card(waiting)
    path = f"sessions/{waiting}/approvals"
    await anna("POST", f"{path}/{card['tool_call_id']}", {"decision": "deny"})

    assert await anna.get(f"{path}?status=pending") == []
    assert [row["decision"] for row in await anna.get(path)] == ["deny"]
    assert [row["decision"] for row in await anna.get(f"{path}?status=decided")] == [
        "deny"
    ]
