"""Failed requests: tried again with growing waits, told of, skippable, stoppable."""

from __future__ import annotations

import asyncio
import json

import pytest

from sessions_app.engine import LoopOptions
from sessions_app.engine.retry import Ladder, describe
from sessions_app.environment.tool import AbortSignal
from sessions_app.llm.client import (
    CredentialsError,
    InvalidRequestError,
    LLMError,
    MalformedStreamError,
    RequestTimeoutError,
)
from tests.sessions_app.engine.scripted import call, half, half_call, say, usage
from tests.sessions_app.engine.story import FakeTime, Story, kinds, only, words
from traces_app.omnimessage import StopReason, user_text


async def test_timeout_is_tried_again_in_the_same_run():
    story = Story([RequestTimeoutError("silent for 300 s")], say("done"))

    seen = await story.run("go")

    assert "abort" not in kinds(seen)
    first, second = only(seen, "request_end")
    assert (first.status, first.attempt) == (StopReason.TIMEOUT, 1)
    assert first.error_message == "silent for 300 s"
    assert 1500 <= first.retry_in_ms <= 2000
    assert (second.status, second.retry_in_ms) == (StopReason.COMPLETED, None)
    assert [b.attempt for b in only(seen, "request_begin")] == [1, 2]
    assert words(story.model.requests[1].messages) == ["go"]
    assert story.model.requests[1].attempt == 2


async def test_retry_gets_the_input_and_one_block_of_what_was_produced():
    story = Story(
        [*say("looking"), *call("a"), *half("so f"), RequestTimeoutError("silent")],
        say("done"),
    )

    await story.run("go")

    prompt, block = story.model.requests[1].messages
    assert prompt.payload.text == "go"
    assert block.payload.synthetic == "retry"
    lines = [json.loads(line) for line in block.payload.text.splitlines()[1:-1]]
    assert [next(iter(line)) for line in lines] == [
        "your_text",
        "your_tool_call",
        "your_text",
        "tool_call_output",
    ]
    assert lines[3]["tool_call_output"]["output"] == "ran a"
    assert story.tools.started == ["c1"]


async def test_second_failure_replaces_the_block_by_one_of_everything():
    story = Story(
        [*say("one"), LLMError("503")],
        [*call("a"), LLMError("503")],
        say("done"),
    )

    await story.run("go")

    _, block = story.model.requests[2].messages
    lines = [json.loads(line) for line in block.payload.text.splitlines()[1:-1]]
    assert lines[0] == {"your_text": "one"}
    assert lines[2]["tool_call_output"]["output"] == "ran a"
    assert story.tools.started == ["c1"]
    assert story.loop.history.conversation[1] == block


async def test_call_that_was_undecided_when_the_stream_broke_is_settled():
    story = Story([*call("a"), MalformedStreamError("cut")], say("done"), answer=None)

    await story.run("go")

    decision = only(story.recorded, "approval_decision")[0]
    assert (decision.decision, decision.source) == ("deny", "stream")
    assert only(story.recorded, "tool_call_output")[0].output.startswith("[not run: ")
    assert story.tools.started == []


async def test_call_that_ran_when_the_stream_broke_runs_to_its_end_first():
    story = Story(
        [*call("a"), asyncio.sleep(0.01), MalformedStreamError("cut")], say("done")
    )
    cut = asyncio.Event()

    async def slow(_):
        await cut.wait()
        return "whole result"

    story.tools.run["a"] = slow
    seen = await story.run(
        "go", until=lambda m: cut.set() if m.kind == "request_end" else None
    )

    order = [
        k
        for k in kinds(seen)
        if k in ("request_begin", "request_end", "tool_call_output")
    ]
    assert order[:4] == [
        "request_begin",
        "request_end",
        "tool_call_output",
        "request_begin",
    ]
    assert "whole result" in words(story.model.requests[1].messages)[1]


async def test_unfinished_call_of_a_broken_stream_is_told_nowhere():
    story = Story([*half_call("a", '{"x'), MalformedStreamError("cut")], say("done"))

    await story.run("go")

    assert story.desk.asked == []
    assert words(story.model.requests[1].messages) == ["go"]


async def test_waits_grow_and_the_end_names_the_count_and_the_cause():
    story = Story(*[[LLMError("503 overloaded")]] * 6)

    seen = await story.run("go")

    assert len(story.model.requests) == 6
    waits = story.time.slept
    assert len(waits) == 5
    assert waits == sorted(waits)
    assert waits[0] <= 2
    assert 22 <= waits[-1] <= 30
    reason = seen[-1].payload.reason
    assert "6" in reason
    assert "503 overloaded" in reason
    assert only(seen, "request_end")[-1].retry_in_ms is None
    assert story.loop.outcome is StopReason.FAILED


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (CredentialsError("401: set OPENAI_API_KEY"), StopReason.AUTH),
        (InvalidRequestError("400: no such model"), StopReason.FAILED),
    ],
)
async def test_what_cannot_succeed_is_not_tried_again(error, status):
    story = Story([error], say("done"))

    seen = await story.run("go")

    assert len(story.model.requests) == 1
    assert only(seen, "request_end")[0].status is status
    assert kinds(seen)[-1] == "abort"
    assert seen[-1].payload.reason == str(error)


async def test_next_message_continues_after_a_final_failure():
    story = Story([*say("half"), InvalidRequestError("400")], say("done"))

    await story.run("go")
    await story.run("again")

    block, prompt = words(story.model.requests[1].messages)
    assert '{"your_text": "half"}' in block
    assert prompt == "again"


async def test_reason_includes_the_underlying_cause():
    error = LLMError("Connection error.")
    error.__cause__ = OSError("ECONNREFUSED 127.0.0.1:9")

    assert describe(error) == "Connection error.: ECONNREFUSED 127.0.0.1:9"


async def test_client_that_raises_something_else_counts_as_a_failed_request():
    story = Story([ZeroDivisionError("oops")], say("done"))

    seen = await story.run("go")

    assert only(seen, "request_end")[0].error_message == "ZeroDivisionError: oops"
    assert len(story.model.requests) == 2


async def test_retry_now_skips_the_wait():
    story = Story([LLMError("503")], say("done"))
    story.time.hold = asyncio.Event()

    await story.run(
        "go",
        until=lambda m: story.loop.retry_now() if m.kind == "request_end" else None,
    )

    assert len(story.model.requests) == 2


async def test_retry_now_without_a_wait_does_not_shorten_a_later_one():
    time = FakeTime()
    ladder = Ladder(LoopOptions(), clock=time.clock, sleep=time.sleep)

    ladder.skip()
    ladder.begin_wait(1, LLMError("503"))
    await ladder.pause(AbortSignal())

    assert len(time.slept) == 1


async def test_message_queued_during_the_wait_goes_with_the_next_attempt():
    story = Story([*say("half"), LLMError("503")], say("done"))

    await story.run(
        "go",
        until=lambda m: (
            (
                story.queued.append(user_text("hurry"))
                if m.kind == "request_end"
                else None
            )
            if len(story.model.requests) == 1
            else None
        ),
    )

    kinds_sent = [m.payload.synthetic for m in story.model.requests[1].messages]
    assert kinds_sent == [None, "retry", None]
    assert words(story.model.requests[1].messages)[2] == "hurry"


async def test_usage_of_a_failed_request_counts():
    story = Story(
        [usage(cache_write=7), LLMError("503")], [*say("done"), usage(output=1)]
    )

    await story.run("go")

    assert story.loop.history.usage.total == 8
