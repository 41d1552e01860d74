"""A power cut and an orderly stop: nothing runs on, nothing is lost, cards still work."""

import os
import time
from pathlib import Path

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]


TWO_TURNS = "$ echo a\n$ sleep 0.2; echo b\nthen\nsay c"


def until(look, within_s: float = 60):
    """Return what `look` returns as soon as it is true."""
    deadline = time.monotonic() + within_s
    while not (found := look()):
        assert time.monotonic() < deadline, "it never came"
        time.sleep(0.05)
    return found


def start(api, text: str, mode: str) -> str:
    made = api.post("projects/default/sessions", json={"approval_mode": mode})
    assert made.status_code == 201, made.text
    session = made.json()["id"]
    sent = api.post(f"sessions/{session}/tasks", json={"text": text})
    assert sent.status_code == 202, sent.text
    return session


def pending(api, session: str) -> list[dict]:
    return api.get(f"sessions/{session}/approvals?status=pending").json()


def status(api, session: str) -> str:
    return api.get(f"sessions/{session}").json()["status"]


def payloads(api, session: str, kind: str) -> list[dict]:
    page = api.get(f"sessions/{session}/events", params={"type": kind}).json()
    return [event["message"]["payload"] for event in page["events"]]


def has_words(pid: str, words: str) -> bool:
    try:
        return words in (Path("/proc") / pid / "cmdline").read_text().replace("\0", " ")
    except OSError:
        return False


def processes_with(words: str) -> list[str]:
    names = [entry.name for entry in Path("/proc").iterdir()]
    return [name for name in names if name.isdigit() and has_words(name, words)]


@pytest.mark.parametrize("end", ["kill", "stop"])
def test_a_server_that_ends_loses_nothing(make_site, end):
    site = make_site()
    site.start()
    mark = f"60.{os.getpid()}{0 if end == 'kill' else 1}"
    with site.api() as api:
        running = start(api, f"$ (setsid sleep {mark} &) ; sleep {mark}", "allow-all")
        waiting = start(api, "$ echo hi\n$ echo two\nthen\nsay end", "always-ask")
        until(lambda: len(processes_with(f"sleep {mark}")) >= 2)
        cards = until(lambda: len(p := pending(api, waiting)) == 2 and p)

        began = time.monotonic()
        if end == "kill":
            site.kill()
        else:
            assert site.stop() == 0
            assert time.monotonic() - began < 10
        site.start()

        assert until(lambda: not processes_with(f"sleep {mark}"))
        (output,) = payloads(api, running, "tool_call_output")
        assert output["stop_reason"] == "aborted"
        assert status(api, running) == "idle"

        assert status(api, waiting) == "waiting"
        again = pending(api, waiting)
        assert [c["tool_call_id"] for c in again] == [c["tool_call_id"] for c in cards]
        for card, decision in zip(again, ["allow", "deny"], strict=True):
            answer = api.post(
                f"sessions/{waiting}/approvals/{card['tool_call_id']}",
                json={
                    "decision": decision,
                    "arguments_sha256": card["arguments_sha256"],
                },
            )
            assert answer.status_code == 200, answer.text
        until(lambda: status(api, waiting) == "idle")
        outputs = payloads(api, waiting, "tool_call_output")
        assert sorted(o["output"] for o in outputs) == [
            "Tool call denied by user.",
            "hi\n",
        ]
        assert payloads(api, waiting, "text")[-1]["text"] == "end"

        for session in (running, waiting):
            sent = api.post(f"sessions/{session}/tasks", json={"text": "say on"})
            assert sent.status_code == 202, sent.text
            until(lambda session=session: status(api, session) == "idle")
            assert payloads(api, session, "text")[-1]["text"] == "on"
    verified = site.manage("verify_trace", "--all")
    assert verified.returncode == 0, verified.stdout + verified.stderr


def test_killed_again_and_again_the_record_stays_whole(make_site):
    site = make_site()
    site.start()
    sessions: list[str] = []
    for cut_s in (0.0, 0.02, 0.05, 0.1, 0.2, 0.35):
        with site.api() as api:
            sessions.append(start(api, TWO_TURNS, "allow-all"))
            sessions.append(start(api, "say " + "w " * 40, "allow-all"))
        time.sleep(cut_s)
        site.kill()
        site.start()

    verified = site.manage("verify_trace", "--all")
    assert verified.returncode == 0, verified.stdout + verified.stderr
    with site.api() as api:
        for session in sessions:
            assert status(api, session) in ("idle",)
            sent = api.post(f"sessions/{session}/tasks", json={"text": "say on"})
            assert sent.status_code == 202, sent.text
        for session in sessions:
            until(lambda session=session: status(api, session) == "idle")
            assert payloads(api, session, "text")[-1]["text"] == "on"


def test_a_second_server_on_the_same_data_refuses_and_names_the_first(make_site):
    site = make_site()
    site.start()

    second = site.manage("serve", "--port", "0")

    assert second.returncode == 1
    assert site.base_url in second.stdout + second.stderr
