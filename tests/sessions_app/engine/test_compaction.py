"""Compaction: a full context becomes a summary, or stays as it is."""

from __future__ import annotations

import asyncio

import pytest

from sessions_app.engine import History, LoopOptions
from sessions_app.engine.compaction import PROMPT, why_compact
from sessions_app.environment.tool import AbortSignal
from sessions_app.llm.client import LLMError
from tests.sessions_app.engine.scripted import call, half, say, usage
from tests.sessions_app.engine.story import Story, kinds, only, words
from traces_app.omnimessage import OmniMessage, StopReason, user_text
from traces_app.omnimessage import payloads as p

FULL = usage(cache_write=900, output=100)


def full_story(*scripts, **options) -> Story:
    return Story([*call("a"), FULL], *scripts, max_context_length=1000, **options)


async def test_outputs_of_the_turn_go_into_the_summary_and_work_goes_on_from_it():
    story = full_story(say("<summary>all of it</summary>"), say("done"))

    seen = await story.run("go")

    asked, continued = story.model.requests[1:]
    assert (asked.purpose, list(asked.tools)) == ("summary", [])
    assert words(asked.messages) == ["go", "<c1>", "ran a", PROMPT]
    (summary,) = continued.messages
    assert summary.payload.synthetic == "summary"
    assert summary.payload.text.endswith("\n\nall of it")
    assert continued.purpose == "turn"
    span = kinds(seen)[
        kinds(seen).index("compaction_begin") : kinds(seen).index("compaction_end") + 2
    ]
    assert span == [
        "compaction_begin",
        "text",
        "request_begin",
        "request_end",
        "token_usage",
        "compaction_end",
        "text",
    ]
    assert words(m for m in seen if m.kind == "text")[-1] == "done"


async def test_message_of_the_user_follows_the_summary_unchanged():
    story = Story(
        [*say("hello"), FULL], say("short"), say("done"), max_context_length=1000
    )

    await story.run("one")
    await story.run("two")

    assert words(story.model.requests[1].messages) == ["one", "hello", PROMPT]
    assert words(story.model.requests[2].messages)[1] == "two"


@pytest.mark.parametrize(
    "summary",
    [
        [],
        say(" "),
        say("<summary> </summary>"),
        call("a", wire_id="x1"),
        [*say("I will call"), *call("a", wire_id="x1")],
    ],
    ids=["nothing", "blank", "empty tags", "a call", "text and a call"],
)
async def test_no_summary_is_a_failure_and_the_old_context_stays(summary):
    story = full_story(summary, [*say("done"), FULL])

    seen = await story.run("go")

    assert only(seen, "compaction_end")[0].status is StopReason.FAILED
    assert words(story.model.requests[2].messages) == ["go", "<c1>", "ran a"]
    assert kinds(seen).count("tool_call") == 1
    assert kinds(seen).count("compaction_begin") == 1


@pytest.mark.parametrize(
    ("answer", "summary"),
    [
        ("plain words", "plain words"),
        ("<summary></summary>beside the tags", "beside the tags"),
        ("before <SUMMARY>inside</SUMMARY> after", "inside"),
        ("<summary>never closed", "never closed"),
    ],
)
async def test_any_text_of_the_model_counts_as_a_summary(answer, summary):
    story = full_story(say(answer), say("done"))

    await story.run("go")

    (message,) = story.model.requests[2].messages
    assert message.payload.text.endswith(f"\n\n{summary}")


async def test_failed_request_for_a_summary_is_tried_again():
    story = full_story([LLMError("503")], say("short"), say("done"))

    seen = await story.run("go")

    assert only(seen, "compaction_end")[0].status is StopReason.COMPLETED
    assert len(story.time.slept) == 1


async def test_compaction_that_failed_is_not_tried_again_in_the_same_run():
    story = full_story([], [*call("a", wire_id="c2"), FULL], say("done"))

    await story.run("go")

    assert [r.purpose for r in story.model.requests] == [
        "turn",
        "summary",
        "turn",
        "turn",
    ]


async def test_no_output_is_sent_twice_after_a_failed_compaction():
    story = full_story([], say("done"))

    await story.run("go")
    await story.run("more")

    sent = words(story.model.requests[-1].messages)
    assert sent.count("ran a") == 1


async def test_stop_during_a_compaction_keeps_the_old_context():
    signal = AbortSignal()
    story = full_story([*half("so f"), asyncio.Event()], say("short"))

    async for message in story.loop.run([user_text("go")], signal=signal):
        if message.kind == "compaction_begin":
            asyncio.get_running_loop().call_later(0.02, signal.abort)
    await story.run("go on")

    assert only(story.recorded, "compaction_end")[0].status is StopReason.ABORTED
    assert kinds(story.recorded).count("abort") == 1
    assert words(story.model.requests[2].messages) == ["go", "<c1>", "ran a", PROMPT]


async def test_usage_adds_up_across_a_compaction_and_the_context_is_small_again():
    story = full_story(
        [*say("short"), usage(cache_read=500, output=10)], [*say("done"), usage()]
    )

    await story.run("go")

    assert story.loop.history.usage.total == 1510
    assert story.loop.history.context_tokens == 0
    assert kinds(story.recorded).count("compaction_begin") == 1


async def test_history_after_a_compaction_equals_the_fold_of_the_record():
    story = full_story(say("short"), call("a", wire_id="c2"), say("done"))

    await story.run("go")

    assert History.from_messages(story.recorded) == story.loop.history


async def test_trace_cut_before_the_summary_keeps_the_old_context():
    story = full_story(say("short"), say("done"))
    await story.run("go")
    end = kinds(story.recorded).index("compaction_end")

    history = History.from_messages(story.recorded[: end + 1])

    assert words(history.messages) == ["go", "<c1>", "ran a"]


def history_of(tokens: int, turns: int = 1) -> History:
    history = History()
    for _ in range(turns):
        for payload in (
            p.Text(role="user", text="hi"),
            p.RequestBegin(),
            p.RequestEnd(status=StopReason.COMPLETED),
            p.TokenUsage(request=usage(output=tokens), session=usage()),
        ):
            history.feed(OmniMessage(payload=payload))
    return history


@pytest.mark.parametrize(
    ("tokens", "configured", "window", "reason"),
    [
        (7951, None, 10_000, None),
        (7952, None, 10_000, "context_length"),
        (500, 500, 10_000, "context_length"),
        (7952, 9000, 10_000, "context_length"),
        (499, 500, 10_000, None),
        (10**9, None, 0, None),
    ],
)
def test_threshold_is_the_smaller_of_configured_and_window_less_reserve(
    tokens, configured, window, reason
):
    options = LoopOptions(max_context_length=configured)

    assert why_compact(history_of(tokens), options, window) == reason


def test_number_of_turns_can_start_a_compaction():
    options = LoopOptions(max_session_turns=3)

    assert why_compact(history_of(1, turns=2), options, 10_000) is None
    assert why_compact(history_of(1, turns=3), options, 10_000) == "session_turns"


def test_compaction_can_be_switched_off():
    options = LoopOptions(max_context_length=10, compaction_mode="off")

    assert why_compact(history_of(1000), options, 10_000) is None
