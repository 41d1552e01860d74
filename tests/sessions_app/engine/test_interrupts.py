"""Stop: at any point, promptly, with everything settled and nothing lost."""

from __future__ import annotations

import asyncio
import json
import time

from sessions_app.engine import History
from sessions_app.environment.tool import AbortSignal
from tests.sessions_app.engine.scripted import call, half, half_call, say, think
from tests.sessions_app.engine.story import Story, kinds, only, stop_at, words
from traces_app.omnimessage import StopReason


async def test_abort_is_the_last_event_when_the_model_is_interrupted():
    signal = AbortSignal()
    story = Story([*half("let me"), asyncio.Event()])

    seen = await story.run(
        "go", signal=signal, until=stop_at(signal, "partial_text", 2)
    )

    assert kinds(seen)[-3:] == ["text", "request_end", "abort"]
    assert only(seen, "request_end")[0].status is StopReason.ABORTED
    assert words(m for m in seen if m.kind == "text") == ["go", "let me"]
    assert story.loop.outcome is StopReason.ABORTED


async def test_next_run_starts_with_one_block_of_request_text_calls_and_results():
    signal = AbortSignal()
    story = Story(
        [*say("looking"), *call("a", '{"x": 1}'), *half("and th"), asyncio.Event()],
        say("done"),
    )
    shown = asyncio.Event()

    def look(message):
        if message.kind == "tool_call_output":
            shown.set()
        if shown.is_set() and message.kind in ("tool_call_output", "partial_text"):
            asyncio.get_running_loop().call_later(0.01, signal.abort)

    await story.run("list the files", signal=signal, until=look)
    await story.run("go on")

    block, prompt = words(story.model.requests[1].messages)
    assert prompt == "go on"
    lines = [json.loads(line) for line in block.splitlines()[1:-1]]
    assert lines == [
        {"request": "list the files"},
        {"your_text": "looking"},
        {
            "your_tool_call": {
                "tool_call_id": "c1",
                "name": "a",
                "arguments": '{"x": 1}',
            }
        },
        {
            "tool_call_output": {
                "tool_call_id": "c1",
                "stop_reason": "completed",
                "output": "ran a",
            }
        },
        {"your_text": "and th"},
    ]
    assert story.model.requests[1].messages[0].payload.synthetic == "carry_over"


async def test_interrupt_while_tools_run_resends_structured_outputs_without_a_block():
    signal = AbortSignal()
    story = Story([*call("a", wire_id="c1"), *call("b", wire_id="c2")], say("done"))

    async def hang(_):
        await asyncio.Event().wait()

    story.tools.run["b"] = hang
    await story.run("go", signal=signal, until=stop_at(signal, "tool_call_output"))
    await story.run("go on")

    assert words(story.model.requests[1].messages) == [
        "go",
        "<c1>",
        "<c2>",
        "ran a",
        "[interrupted: tool aborted by user]",
        "go on",
    ]


async def test_interrupt_denies_what_waits_for_a_decision():
    signal = AbortSignal()
    story = Story(call("a"), say("done"), answer=None)

    seen = await story.run("go", signal=signal, until=stop_at(signal, "request_end"))

    decision = only(seen, "approval_decision")[0]
    assert (decision.decision, decision.source) == ("deny", "interrupt")
    assert only(seen, "tool_call_output")[0].output == (
        "[interrupted: tool aborted by user]"
    )
    assert kinds(seen)[-1] == "abort"
    assert story.tools.started == []


async def test_prompts_of_runs_that_never_asked_are_all_sent_unchanged():
    story = Story(say("done"))
    signal = AbortSignal()
    signal.abort()

    first = await story.run("one", signal=signal)
    await story.run("two", signal=signal)
    await story.run("three")

    assert kinds(first) == ["text", "abort"]
    assert words(story.model.requests[0].messages) == ["one", "two", "three"]


async def test_run_ends_at_once_when_the_provider_ignores_cancellation():
    release = asyncio.Event()

    async def stubborn():
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue

    signal = AbortSignal()
    story = Story(lambda _: [*half("hm"), stubborn(), *say("far too late")])
    began = time.monotonic()

    seen = await story.run(
        "go", signal=signal, until=stop_at(signal, "partial_text", 2)
    )

    assert time.monotonic() - began < 2
    assert kinds(seen)[-1] == "abort"
    release.set()
    await asyncio.sleep(0.01)
    assert "far too late" not in words(story.recorded)


async def test_run_ends_when_a_tool_hangs_and_ignores_everything():
    release = asyncio.Event()
    signal = AbortSignal()
    story = Story(call("a"), say("done"), stop_grace_s=0.05)

    async def execute_tool(tool_call, signal=None, approve=None):
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue
        yield tool_call

    story.tools.execute_tool = execute_tool
    seen = await story.run("go", signal=signal, until=stop_at(signal, "tool_started"))
    release.set()
    await asyncio.sleep(0.01)

    (output,) = only(seen, "tool_call_output")
    assert output.stop_reason is StopReason.ABORTED
    assert output.output == "[interrupted: tool aborted by user]"
    assert kinds(seen)[-1] == "abort"


async def test_allow_that_comes_with_the_interrupt_does_not_run():
    signal = AbortSignal()
    story = Story(call("a"), say("done"))
    honest = story.desk

    async def allow_too_late(message, settle):
        await settle.wait()
        return honest.decision(message, "allow", "user")

    story.desk = allow_too_late
    seen = await story.run("go", signal=signal, until=stop_at(signal, "request_end"))

    assert story.tools.started == []
    assert "tool_started" not in kinds(seen)
    assert only(seen, "approval_decision")[0].decision == "allow"
    assert only(seen, "tool_call_output")[0].output == (
        "[interrupted: tool aborted by user]"
    )


async def test_call_whose_arguments_had_not_ended_was_never_a_call():
    signal = AbortSignal()
    story = Story([*half_call("a", '{"x": '), asyncio.Event()], say("done"))

    seen = await story.run(
        "go", signal=signal, until=stop_at(signal, "partial_tool_call", 2)
    )

    assert story.desk.asked == []
    assert kinds(seen)[-2:] == ["request_end", "abort"]


async def test_thought_alone_is_not_carried_over():
    signal = AbortSignal()
    story = Story([*think("hm"), asyncio.Event()], say("done"))

    await story.run("go", signal=signal, until=stop_at(signal, "thinking"))
    await story.run("go on")

    assert words(story.model.requests[1].messages) == ["go", "go on"]


async def test_stop_during_the_wait_for_a_retry_ends_the_run():
    signal = AbortSignal()
    story = Story([ConnectionError("refused")], say("done"))
    story.time.hold = asyncio.Event()

    seen = await story.run("go", signal=signal, until=stop_at(signal, "request_end"))

    assert kinds(seen)[-2:] == ["request_end", "abort"]
    assert len(story.model.requests) == 1


async def test_history_of_an_interrupted_run_equals_the_fold_of_its_record():
    signal = AbortSignal()
    story = Story(
        [*say("a"), *call("a", wire_id="c1"), *half("b"), asyncio.Event()], say("done")
    )

    await story.run("go", signal=signal, until=stop_at(signal, "tool_call_output"))

    assert History.from_messages(story.recorded) == story.loop.history
