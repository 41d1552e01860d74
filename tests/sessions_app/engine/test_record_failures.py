"""No call runs without its record; a record that fails ends the run and says so."""

from __future__ import annotations

import asyncio

import pytest

from sessions_app.engine import RecordError
from tests.sessions_app.engine.scripted import call, half, say
from tests.sessions_app.engine.story import Story, kinds, only
from traces_app.omnimessage import StopReason


async def run_to_failure(story: Story) -> list:
    with pytest.raises(RecordError, match="the disk is full"):
        await story.run("go")
    return story.seen


def kind_is(kind: str, number: int = 1):
    left = [number]

    def look(message):
        if message.kind == kind:
            left[0] -= 1
            return left[0] == 0
        return False

    return look


@pytest.mark.parametrize("kind", ["tool_call", "approval_decision", "tool_started"])
async def test_call_whose_record_fails_is_not_started(kind):
    story = Story(call("a"), say("done"))
    story.record.fail_on = lambda message: message.kind == kind

    await run_to_failure(story)

    assert story.tools.started == []
    assert story.loop.outcome is StopReason.FAILED
    assert not story.loop.is_running


async def test_run_says_why_it_stopped_when_the_record_works_again():
    story = Story(call("a"), say("done"))
    story.record.fail_on = kind_is("tool_started")

    await run_to_failure(story)

    assert kinds(story.recorded)[-1] == "abort"
    assert "the disk is full" in story.recorded[-1].payload.reason


async def test_request_that_is_open_when_the_record_fails_is_ended_before_the_abort():
    story = Story(say("hello"))
    story.record.fail_on = lambda message: (
        message.kind == "text" and message.payload.text == "hello"
    )

    await run_to_failure(story)

    assert kinds(story.recorded)[-3:] == ["request_begin", "request_end", "abort"]


async def test_what_is_not_on_record_is_not_shown():
    story = Story(say("hello"))
    story.record.fail_on = lambda message: (
        message.kind == "text" and message.payload.text == "hello"
    )

    seen = await run_to_failure(story)

    assert [m for m in seen if not m.is_partial] == story.recorded


async def test_other_tools_are_stopped_and_their_outputs_recorded():
    story = Story([*call("a", wire_id="c1"), *call("b", wire_id="c2")], say("done"))

    async def hang(_):
        await asyncio.Event().wait()

    story.tools.run["a"] = hang
    story.record.fail_on = kind_is("tool_started", 2)

    await run_to_failure(story)

    (output,) = only(story.recorded, "tool_call_output")
    assert (output.tool_call_id, output.stop_reason) == ("c1", StopReason.ABORTED)
    assert story.tools.started == ["c1"]
    assert kinds(story.recorded)[-1] == "abort"


async def test_stream_of_the_model_is_closed_when_the_record_fails():
    story = Story([*call("a"), *half("and"), asyncio.Event()])
    story.record.fail_on = lambda message: message.kind == "approval_decision"

    await run_to_failure(story)

    assert story.model.closed == 1


async def test_next_run_closes_what_the_failed_record_left_open():
    story = Story(call("a"), say("done"))
    story.record.fail_on = lambda message: message.kind == "tool_call_output"
    await run_to_failure(story)
    story.record.fail_on = lambda _: False

    await story.run("go on")

    (output,) = only(story.recorded, "tool_call_output")
    assert "side effects is unknown" in output.output
    sent = [m.kind for m in story.model.requests[1].messages]
    assert sent == ["text", "tool_call", "tool_call_output", "text"]
