"""A power cut while a subagent waits: its card, its turn and both records hold."""

import json
import time

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.timeout(200)]


def until(look, within_s: float = 60):
    """Return what `look` returns as soon as it is true."""
    deadline = time.monotonic() + within_s
    while not (found := look()):
        assert time.monotonic() < deadline, "it never came"
        time.sleep(0.05)
    return found


def pending(api, session: str) -> list[dict]:
    return api.get(f"sessions/{session}/approvals?status=pending").json()


def status(api, session: str) -> str:
    return api.get(f"sessions/{session}").json()["status"]


def outputs(api, session: str) -> list[dict]:
    page = api.get(f"sessions/{session}/events?type=tool_call_output").json()
    return [event["message"]["payload"] for event in page["events"]]


def decide(api, card: dict) -> None:
    path = f"sessions/{card['session']}/approvals/{card['tool_call_id']}"
    assert api.post(path, json={"decision": "allow"}).status_code == 200


def test_a_subagent_that_waits_outlives_a_power_cut(make_site):
    site = make_site()
    site.start()
    prompt = json.dumps({"prompt": "$ echo hi\nthen\nsay done"})
    with site.api() as api:
        body = {"approval_mode": "always-ask"}
        parent = api.post("projects/default/sessions", json=body).json()["id"]
        text = f"call run_subagent {prompt}"
        api.post(f"sessions/{parent}/tasks", json={"text": text})
        decide(api, until(lambda: pending(api, parent))[0])
        card = until(lambda: [c for c in pending(api, parent) if c["origin"]])[0]
        child = card["session"]

        site.kill()
        site.start()

        assert (status(api, parent), status(api, child)) == ("waiting", "waiting")
        assert pending(api, parent) == [card]
        (closed,) = outputs(api, parent)
        assert closed["stop_reason"] == "aborted"

        decide(api, card)
        until(lambda: status(api, child) == status(api, parent) == "idle")
        (ran,) = outputs(api, child)
        assert (ran["output"], ran["stop_reason"]) == ("hi\n", "completed")
        assert len(outputs(api, parent)) == 1  # nothing runs in the parent by itself

        again = json.dumps({"subagent_id": child})
        api.post(
            f"sessions/{parent}/tasks", json={"text": f"call input_subagent {again}"}
        )
        decide(api, until(lambda: pending(api, parent))[0])
        until(lambda: status(api, parent) == "idle")
        assert "was lost" in outputs(api, parent)[-1]["output"]
    site.stop()
    done = site.manage("verify_trace", "--all")
    assert done.returncode == 0, done.stdout
