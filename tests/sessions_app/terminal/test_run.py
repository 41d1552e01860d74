"""One task in a terminal: modes, answers, what is printed, how it ends."""

from __future__ import annotations

import json

import pytest
from asgiref.sync import sync_to_async

from sessions_app.models import Session
from traces_app.verify import verify_trace

pytestmark = pytest.mark.django_db(transaction=True)
TWO = "$ echo one\n$ echo two"
DENIED = "Tool call denied by user."


async def test_a_task_runs_in_the_directory_of_the_caller(run, tmp_path):
    done = await run("$ pwd\nthen\nsay done")

    assert done.code == 0
    assert done.out == f"→ exec_command pwd\n{tmp_path}\ndone\n"


async def test_json_prints_messages_and_nothing_else(run):
    done = await run("say hello there", is_json=True)

    assert done.code == 0 and done.err == ""
    assert done.messages[0]["type"] == "session_meta"
    assert [p["text"] for p in done.payloads("text")] == [
        "say hello there",
        "hello there",
    ]
    pieces = done.payloads("partial_text")
    assert "".join(p.get("text", "") for p in pieces) == "hello there"


async def test_recorded_messages_are_printed_as_the_record_holds_them(run):
    done = await run("$ echo hi", is_json=True)

    session = await Session.objects.aget()
    recorded = await sync_to_async(_lines)(session)
    printed = [line for line in done.out.splitlines() if '"partial_' not in line]
    assert printed == recorded


def _lines(session) -> list[str]:
    from traces_app import reader

    return [event.json for event in reader.iter_events(session.trace_id)]


@pytest.mark.parametrize(
    ("mode", "answers", "outputs", "source"),
    [
        ("allow-all", "", ["one\n", "two\n"], "mode"),
        ("deny-all", "y\ny\n", [DENIED, DENIED], "mode"),
        ("always-ask", "y\nyes\n", ["one\n", "two\n"], "user"),
        ("read-only", "y\nn\n", ["one\n", DENIED], "user"),
        ("always-ask", "Yes please\n\n", [DENIED, DENIED], "user"),
        ("always-ask", "y\n", ["one\n", DENIED], "user"),
        ("always-ask", "", [DENIED, DENIED], "user"),
        ("always-ask", "n\ny", [DENIED, "two\n"], "user"),
    ],
)
async def test_each_mode_decides_as_it_says(run, mode, answers, outputs, source):
    done = await run(TWO, approval_mode=mode, answers=answers, is_json=True)

    found = {p["tool_call_id"]: p["output"] for p in done.payloads("tool_call_output")}
    calls = [p["tool_call_id"] for p in done.payloads("tool_call")]
    assert [found[call] for call in calls] == outputs
    decided = done.payloads("approval_decision")
    assert {(d["source"], d["via"], d["decided_by"]) for d in decided} == {
        (source, "cli", None)
    }
    assert done.code == 0


async def test_a_question_goes_to_standard_error_with_all_there_is(run, tmp_path):
    done = await run(
        "call exec_command " + json.dumps({"cmd": "echo a\u202eb"}),
        approval_mode="always-ask",
        answers="y\n",
        is_json=True,
    )

    assert "exec_command (read-write) waits" in done.err
    assert f"  in {tmp_path}\n" in done.err
    assert "echo a\\u{202e}b" in done.err
    assert "Allow" not in done.out


async def test_read_only_asks_about_an_unknown_tool(run):
    done = await run(
        "call no_such_tool {}", approval_mode="read-only", answers="y\n", is_json=True
    )

    assert "unknown tool" in done.err
    assert done.payloads("tool_call_output")[0]["stop_reason"] == "failed"


async def test_a_request_that_fails_for_good_ends_with_one(run):
    done = await run("fail auth")

    assert done.code == 1
    assert "credentials rejected" in done.err


async def test_a_turn_cap_ends_with_one(run, project):
    from sessions_app.runtime import configs

    text = "system_prompt: Work.\nmax_turns: 1\n"
    agent = await project.agents.aget()
    await sync_to_async(configs.save)(agent, text, base_version=1)

    done = await run("$ echo hi\nthen\nsay done")

    assert done.code == 1
    assert "[reached max turns (1); stopping]" in done.out


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        ({"message": " \n"}, "The message is empty"),
        ({"project": "none"}, "There is no project 'none'; --project takes: default."),
        ({"agent": "none"}, "no agent 'none'"),
        ({"model": "none/none"}, "no model 'none/none'"),
        ({"workspace": "/no/such/folder"}, "is not a folder"),
    ],
)
async def test_what_cannot_be_is_a_matter_of_usage(run, wanted, words):
    done = await run(**{"message": "say hi", **wanted})

    assert (done.code, done.out) == (2, "")
    assert words in done.err
    assert not await Session.objects.aexists()


async def test_model_and_thinking_level_are_the_caller_s(run):
    await run("say hi", model="demo/demo-text", thinking_level="low")

    session = await Session.objects.aget()
    assert (session.model_id, session.thinking_level) == ("demo-text", "low")
    assert session.title == "say hi"


async def test_the_session_is_left_idle_owned_by_nobody_and_whole(run):
    await run('call exec_command {"cmd": "sleep 60", "yield_time_ms": 250}')

    session = await Session.objects.aget()
    verdict = await sync_to_async(verify_trace)(session.pk)
    assert (session.status, session.owner_id) == ("idle", None)
    assert verdict.is_intact and verdict.is_complete
