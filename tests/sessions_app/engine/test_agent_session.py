"""The SDK: deny by default, real commands, a record of single messages."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time

import pytest

from sessions_app.engine import AgentSession, History, LoopOptions, RecordError
from sessions_app.environment import AbortSignal, Environment, default_tool_definitions
from tests.sessions_app.engine.scripted import ScriptedModel, call, say
from tests.sessions_app.engine.story import kinds, only, words
from traces_app.omnimessage import StopReason, user_text

CREATES = call("exec_command", '{"cmd": "echo here > made.txt; echo made"}')


@pytest.fixture
async def environment(tmp_path):
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    (tmp_path / "home").mkdir()
    env = Environment(
        workspace_dir=workspace,
        tools=default_tool_definitions(),
        model_is_vision=True,
        env={"HOME": str(tmp_path / "home")},
    )
    yield env
    await env.aclose()


async def allow(_) -> str:
    return "allow"


async def run(session, *texts, **arguments) -> list:
    return [
        message
        async for message in session.run([user_text(t) for t in texts], **arguments)
    ]


def session_with(environment, *scripts, **arguments) -> AgentSession:
    model = ScriptedModel(*scripts)
    session = AgentSession(
        llm=model, environment=environment, system_prompt="Test.", **arguments
    )
    session.model = model
    return session


async def test_without_approval_callback_every_call_is_denied(environment, tmp_path):
    session = session_with(environment, CREATES, say("done"))

    seen = await run(session, "go")

    assert not (tmp_path / "workspace" / "made.txt").exists()
    (decision,) = only(seen, "approval_decision")
    assert (decision.decision, decision.source, decision.via) == (
        "deny",
        "policy",
        "auto",
    )
    assert words(session.model.requests[1].messages)[-1] == "Tool call denied by user."


async def test_allowed_command_really_runs(environment, tmp_path):
    session = session_with(environment, CREATES, say("done"))

    seen = await run(session, "go", approve=allow)

    assert (tmp_path / "workspace" / "made.txt").read_text() == "here\n"
    (output,) = only(seen, "tool_call_output")
    assert (output.output, output.stop_reason) == ("made\n", StopReason.COMPLETED)
    (decision,) = only(seen, "approval_decision")
    assert (decision.source, decision.via) == ("user", "api")


@pytest.mark.parametrize("answer", ["deny", "ALLOW", None, True, "allow "])
async def test_anything_but_allow_is_a_deny(environment, answer):
    async def approve(_):
        return answer

    session = session_with(environment, CREATES, say("done"))

    seen = await run(session, "go", approve=approve)

    assert only(seen, "approval_decision")[0].decision == "deny"
    assert "tool_started" not in kinds(seen)


async def test_callback_that_raises_is_a_deny_and_the_run_goes_on(environment):
    async def approve(_):
        raise KeyError("oops")

    session = session_with(environment, CREATES, say("done"))

    seen = await run(session, "go", approve=approve)

    assert only(seen, "approval_decision")[0].decision == "deny"
    (output,) = only(seen, "tool_call_output")
    assert output.output.splitlines()[0] == "Tool call denied by user."
    assert kinds(seen)[-1] == "token_usage"


async def test_unknown_tool_and_broken_json_are_decided_then_fail(environment):
    asked = []

    async def approve(message):
        asked.append(message.payload.name)
        return "allow"

    calls = [*call("nope", wire_id="c1"), *call("exec_command", '{"cmd', wire_id="c2")]
    session = session_with(environment, calls, say("done"))

    seen = await run(session, "go", approve=approve)

    assert asked == ["nope", "exec_command"]
    assert [o.stop_reason for o in only(seen, "tool_call_output")] == [
        StopReason.FAILED,
        StopReason.FAILED,
    ]


async def test_interrupt_ends_a_run_whose_callback_never_answers(environment):
    signal = AbortSignal()
    gone = asyncio.Event()

    async def approve(_):
        try:
            await asyncio.Event().wait()
        finally:
            gone.set()

    session = session_with(environment, CREATES, say("done"))
    asyncio.get_running_loop().call_later(0.05, signal.abort)

    seen = await run(session, "go", approve=approve, signal=signal)

    assert gone.is_set()
    assert only(seen, "approval_decision")[0].source == "interrupt"
    assert kinds(seen)[-1] == "abort"


async def test_interrupt_ends_a_running_command_promptly(environment):
    signal = AbortSignal()
    session = session_with(
        environment, call("exec_command", '{"cmd": "echo on; sleep 60"}'), say("done")
    )
    seen = []
    began = time.monotonic()

    async for message in session.run([user_text("go")], approve=allow, signal=signal):
        seen.append(message)
        if message.kind == "partial_tool_call_output" and message.payload.output:
            signal.abort()

    assert time.monotonic() - began < 10
    (output,) = only(seen, "tool_call_output")
    assert output.stop_reason is StopReason.ABORTED
    assert output.output.startswith("on\n")
    assert kinds(seen)[-1] == "abort"


async def test_record_gets_every_message_in_stream_order(environment):
    recorded = []

    async def record(message):
        recorded.append(message)
        await asyncio.sleep(0)

    calls = [*CREATES, *call("exec_command", '{"cmd": "true"}', wire_id="c2")]
    session = session_with(environment, calls, say("done"), record=record)

    seen = await run(session, "go", approve=allow)

    assert recorded == [m for m in seen if not m.is_partial and not m.origin]
    assert recorded[0].kind == "session_meta"
    assert kinds(recorded).count("session_meta") == 1
    assert not any(m.is_partial for m in recorded)
    reread = [type(m).from_json(m.to_json()) for m in recorded]
    assert History.from_messages(reread) == session.history


async def test_failing_record_starts_nothing_and_stops_the_run(environment, tmp_path):
    async def record(message):
        if message.kind == "tool_started":
            raise OSError(28, "No space left on device")

    session = session_with(environment, CREATES, say("done"), record=record)

    with pytest.raises(RecordError, match="No space left"):
        await run(session, "go", approve=allow)

    assert not (tmp_path / "workspace" / "made.txt").exists()


async def test_session_goes_on_from_the_history_of_its_record(environment):
    recorded = []

    async def record(message):
        recorded.append(message)

    first = session_with(environment, CREATES, say("done"), record=record)
    await run(first, "go", approve=allow)

    second = session_with(
        environment, say("yes"), history=History.from_messages(recorded)
    )
    seen = await run(second, "did you?")

    assert "session_meta" not in kinds(seen)
    assert words(second.model.requests[0].messages) == [
        "go",
        "<c1>",
        "made\n",
        "done",
        "did you?",
    ]


async def test_approval_of_a_run_that_is_refused_does_not_reach_the_other(environment):
    go = asyncio.Event()
    session = session_with(environment, [go, *CREATES], say("done"))
    first = session.run([user_text("go")])
    await anext(first)

    with pytest.raises(RuntimeError):
        await run(session, "again", approve=allow)
    go.set()
    seen = [message async for message in first]

    assert only(seen, "approval_decision")[0].decision == "deny"


async def test_options_reach_the_loop(environment):
    session = session_with(
        environment, CREATES, say("done"), options=LoopOptions(max_turns=1)
    )

    seen = await run(session, "go", approve=allow)

    assert words(seen[-1:]) == ["[reached max turns (1); stopping]"]


def test_sdk_needs_neither_django_settings_nor_a_database(tmp_path):
    program = """
import asyncio, sys
from sessions_app.engine import AgentSession
from sessions_app.environment import AbortSignal, Environment, default_tool_definitions
from traces_app.omnimessage import assistant_text, user_text

class Model:
    provider = model_id = "none"
    is_vision = False
    context_window = 10000
    async def stream(self, request):
        yield assistant_text("hello")
    async def aclose(self):
        pass

async def main():
    env = Environment(workspace_dir=sys.argv[1], tools=default_tool_definitions())
    session = AgentSession(llm=Model(), environment=env, system_prompt="x")
    async for message in session.run([user_text("hi")], signal=AbortSignal()):
        print(message.kind)
    await env.aclose()

asyncio.run(main())
loaded = [name for name in sys.modules if name.split(".")[0] in ("django", "channels")]
assert not loaded, loaded
"""
    variables = {k: v for k, v in os.environ.items() if not k.startswith("DJANGO")}

    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)],
        env=variables,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[-1] == "token_usage"
