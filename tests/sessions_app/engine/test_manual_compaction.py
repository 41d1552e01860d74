"""A compaction that a person asks for: a run of its own, and nothing beside it."""

from __future__ import annotations

import asyncio

import pytest

from sessions_app.engine import History
from sessions_app.engine.compaction import PROMPT
from sessions_app.environment.tool import AbortSignal
from sessions_app.llm.client import LLMError
from tests.sessions_app.engine.scripted import call, half, say, usage
from tests.sessions_app.engine.story import Story, kinds, only, words
from traces_app.omnimessage import StopReason
from traces_app.omnimessage import payloads as p


async def compacted(story: Story, signal=None, until=None) -> list:
    seen = []
    async for message in story.loop.compact(signal=signal):
        seen.append(message)
        if until is not None:
            until(message)
    return seen


async def test_it_summarises_now_and_the_next_message_follows_the_summary():
    story = Story(say("hello"), say("<summary>short</summary>"), say("done"))
    await story.run("one")

    seen = await compacted(story)
    await story.run("two")

    assert kinds(seen) == [
        "compaction_begin",
        "text",
        "request_begin",
        "request_end",
        "token_usage",
        "compaction_end",
        "text",
    ]
    assert only(seen, "compaction_begin")[0].reason == "manual"
    assert story.model.requests[1].purpose == "summary"
    assert words(story.model.requests[1].messages) == ["one", "hello", PROMPT]
    summary, message = words(story.model.requests[2].messages)
    assert summary.endswith("\n\nshort") and message == "two"


async def test_it_asks_the_model_for_nothing_but_the_summary():
    story = Story(say("hello"), say("short"))
    await story.run("one")

    await compacted(story)

    assert len(story.model.requests) == 2
    assert story.loop.outcome is StopReason.COMPLETED


async def test_outputs_of_a_stopped_task_go_into_the_summary():
    signal = AbortSignal()
    story = Story(call("a"), say("never"), say("short"))
    await story.run("go", signal=signal, until=lambda m: _stop_after_output(m, signal))

    await compacted(story)

    assert "ran a" in words(story.model.requests[-1].messages)
    assert [m.payload.synthetic for m in story.loop.history.messages] == ["summary"]


def _stop_after_output(message, signal):
    if message.kind == "tool_call_output":
        signal.abort()


async def test_stop_abandons_it_and_the_old_context_stays():
    signal = AbortSignal()
    story = Story(say("hello"), [*half("so f"), asyncio.Event()], say("done"))
    await story.run("one")

    def stop(message):
        if message.kind == "request_begin":
            asyncio.get_running_loop().call_later(0.02, signal.abort)

    seen = await compacted(story, signal, stop)
    await story.run("two")

    assert only(seen, "compaction_end")[0].status is StopReason.ABORTED
    assert kinds(seen)[-1] == "abort"
    assert words(story.model.requests[-1].messages) == ["one", "hello", "two"]


async def test_stop_ends_the_wait_before_another_attempt():
    signal = AbortSignal()
    story = Story(say("hello"), [LLMError("503")], say("done"))
    story.time.hold = asyncio.Event()
    await story.run("one")

    def stop(message):
        if message.kind == "request_end":
            asyncio.get_running_loop().call_later(0.02, signal.abort)

    seen = await compacted(story, signal, stop)

    assert only(seen, "compaction_end")[0].status is StopReason.ABORTED
    assert story.loop.outcome is StopReason.ABORTED


@pytest.mark.parametrize(
    "summary", [[], call("a", wire_id="x1")], ids=["empty", "call"]
)
async def test_an_answer_that_is_no_summary_is_a_failure(summary):
    story = Story(say("hello"), summary)
    await story.run("one")

    await compacted(story)

    assert story.loop.outcome is StopReason.FAILED
    assert words(story.loop.history.messages) == ["one", "hello"]


async def test_without_a_conversation_nothing_is_asked():
    story = Story()

    seen = await compacted(story)

    assert seen == [] and story.model.requests == []
    assert story.loop.outcome is StopReason.FAILED


async def test_calls_that_wait_for_a_person_are_left_alone():
    story = Story(call("a"))
    await story.run("one")
    asked = ["text", "request_begin", "tool_call", "request_end"]
    undecided = [m for m in story.recorded if m.kind in asked][:4]
    waiting = Story(history=History.from_messages(undecided))

    seen = await compacted(waiting)

    assert seen == [] and waiting.model.requests == []
    assert len(waiting.loop.history.open_calls) == 1


async def test_a_compaction_that_a_crash_cut_is_closed_before_the_next():
    story = Story(say("hello"), say("short"))
    await story.run("one")
    await compacted(story)
    cut = kinds(story.recorded).index("compaction_begin") + 3
    later = Story(say("again"), history=History.from_messages(story.recorded[:cut]))

    seen = await compacted(later)

    assert kinds(seen)[:3] == ["request_end", "compaction_end", "compaction_begin"]
    assert later.loop.outcome is StopReason.COMPLETED


async def test_history_equals_the_fold_of_the_record():
    story = Story([*say("hello"), usage(cache_write=9)], say("short"), say("done"))

    await story.run("one")
    await compacted(story)
    await story.run("two")

    assert History.from_messages(story.recorded) == story.loop.history


async def test_two_runs_at_once_are_refused():
    story = Story(say("hello"), [asyncio.Event()])
    await story.run("one")
    first = story.loop.compact()
    assert (await anext(first)).kind == "compaction_begin"

    with pytest.raises(RuntimeError, match="has not ended"):
        await anext(story.loop.run())
    await first.aclose()


async def test_an_unsent_message_of_the_user_follows_the_summary():
    signal = AbortSignal()
    story = Story(say("hello"), [*half("w"), asyncio.Event()], say("short"))
    await story.run("one")

    def stop(message):
        if message.kind == "request_begin":
            asyncio.get_running_loop().call_later(0.02, signal.abort)

    await story.run("two", signal=signal, until=stop)
    await compacted(story)

    kept = [m.payload for m in story.loop.history.messages if m.kind == "text"]
    assert isinstance(kept[0], p.Text) and kept[0].synthetic == "summary"
    assert kept[1].text == "two"
