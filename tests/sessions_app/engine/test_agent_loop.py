"""The loop: turns, order of record and stream, queued messages, the turn cap."""

from __future__ import annotations

import asyncio

import pytest

from sessions_app.engine import History
from tests.sessions_app.engine.scripted import call, half, say, think, usage
from tests.sessions_app.engine.story import Story, kinds, only, words
from traces_app.omnimessage import StopReason, user_text


async def test_turn_without_tool_calls_ends_the_task():
    story = Story(say("hello"))

    seen = await story.run("hi")

    assert kinds(seen) == [
        "text",
        "tool_list_ready",
        "request_begin",
        "text",
        "request_end",
        "token_usage",
    ]
    assert len(story.model.requests) == 1
    assert story.loop.outcome is StopReason.COMPLETED


async def test_next_request_comes_only_after_every_call_has_its_output():
    story = Story([*call("a", wire_id="c1"), *call("b", wire_id="c2")], say("done"))

    seen = await story.run("go")

    second_begin = [i for i, m in enumerate(seen) if m.kind == "request_begin"][1]
    outputs = [i for i, m in enumerate(seen) if m.kind == "tool_call_output"]
    assert len(outputs) == 2
    assert max(outputs) < second_begin


async def test_request_end_comes_while_a_tool_still_runs():
    story = Story(call("a"), say("done"))
    ended = asyncio.Event()

    async def slow(_):
        await ended.wait()
        return "late"

    story.tools.run["a"] = slow
    seen = await story.run(
        "go", until=lambda m: ended.set() if m.kind == "request_end" else None
    )

    order = [k for k in kinds(seen) if k in ("request_end", "tool_call_output")]
    assert order[:2] == ["request_end", "tool_call_output"]


async def test_stream_and_record_have_the_same_order():
    story = Story(
        [*think("hm"), *say("two"), *call("a", wire_id="c1"), *call("b", wire_id="c2")],
        [*call("a", wire_id="c3"), *say("more")],
        say("done"),
    )

    seen = await story.run("go")

    assert [m for m in seen if not m.is_partial] == story.recorded


async def test_order_is_kept_when_later_records_return_first():
    story = Story([*call("a", wire_id="c1"), *call("b", wire_id="c2")], say("done"))
    story.record.delay = lambda messages: (
        0.02 if getattr(messages[0].payload, "tool_call_id", "") == "c1" else 0
    )

    seen = await story.run("go")

    assert story.record.durable != story.recorded
    assert [m for m in seen if not m.is_partial] == story.recorded
    assert History.from_messages(story.recorded) == story.loop.history


async def test_pieces_of_a_text_are_streamed_before_it_is_complete():
    story = Story(say("hello"))

    seen = await story.run("hi")

    text = [m for m in seen if m.kind in ("partial_text", "text")][1:]
    assert [getattr(m.payload, "event_type", "whole") for m in text] == [
        "start",
        "delta",
        "stop",
        "whole",
    ]


@pytest.mark.parametrize("blank", ["", " \n"])
async def test_blank_text_is_neither_shown_nor_recorded(blank):
    story = Story([*half(blank), *say(blank), *call("a")], say("done"))

    seen = await story.run("go")

    assert words(m for m in seen if m.kind == "text") == ["go", "done"]
    pieces = [m for m in seen if m.kind == "partial_text"]
    assert [m.payload.text for m in pieces] == ["", "done", ""]


async def test_tool_list_is_told_once_and_again_when_it_changes():
    story = Story(say("one"), say("two"), say("three"))

    await story.run("1")
    await story.run("2")
    story.tools.tool_list = list
    await story.run("3")

    assert [t.tools for t in only(story.recorded, "tool_list_ready")] == [
        tuple({"name": n, "description": "", "parameters": {}} for n in "ab"),
        (),
    ]
    assert [len(r.tools) for r in story.model.requests] == [2, 2, 0]


async def test_usage_is_told_after_each_request_and_added_up():
    story = Story(
        [*call("a"), usage(cache_read=10, cache_write=5, output=2)],
        [*say("done"), usage(cache_read=20, cache_write=1, output=3)],
    )

    await story.run("go")

    first, second = only(story.recorded, "token_usage")
    assert (first.request.total, first.session.total) == (17, 17)
    assert second.session == usage(cache_read=30, cache_write=6, output=5)
    assert story.loop.history.usage == second.session


async def test_turn_cap_stops_the_run_and_the_next_one_sends_the_outputs_first():
    story = Story(call("a"), say("done"), max_turns=1)

    seen = await story.run("go")
    capped_outcome = story.loop.outcome
    await story.run("go on")

    notice = seen[-1].payload
    assert notice.text == "[reached max turns (1); stopping]"
    assert notice.extra == {"stop_reason": "failed"}
    assert capped_outcome is StopReason.FAILED
    assert words(story.model.requests[1].messages) == ["go", "<c1>", "ran a", "go on"]


@pytest.mark.parametrize("max_turns", [-1, 0])
async def test_no_turn_cap_for_minus_one_and_zero(max_turns):
    scripts = [call("a", wire_id=f"c{n}") for n in range(20)]
    story = Story(*scripts, say("done"), max_turns=max_turns)

    await story.run("go")

    assert len(story.model.requests) == 21


async def test_turn_cap_counts_anew_for_a_queued_task():
    story = Story(call("a"), say("done"), max_turns=1)
    await story.run("go")

    story.queued = [user_text("again")]
    await story.run()

    assert story.loop.outcome is StopReason.COMPLETED
    assert words(story.model.requests[1].messages)[-1] == "again"


async def test_queued_message_is_delivered_at_the_next_request_after_all_outputs():
    story = Story([*say("wait"), *call("a")], say("done"))

    async def slow(_):
        story.queued.append(user_text("one more thing"))
        return "out"

    story.tools.run["a"] = slow
    seen = await story.run("go")

    assert words(story.model.requests[1].messages) == [
        "go",
        "wait",
        "<c1>",
        "out",
        "one more thing",
    ]
    assert [m for m in seen if not m.is_partial] == story.recorded


async def test_message_queued_during_the_last_answer_is_left_for_the_next_task():
    async def write():
        story.queued.append(user_text("too late"))

    story = Story(lambda _: [write(), *say("done")])

    await story.run("go")

    assert len(story.model.requests) == 1
    assert words(story.queued) == ["too late"]


async def test_run_without_input_does_nothing():
    story = Story()

    assert await story.run() == []
    assert story.model.requests == []


async def test_run_without_input_goes_on_with_open_calls():
    first = Story(call("a"), answer=None)
    run = asyncio.create_task(first.run("go"))
    while "request_end" not in kinds(first.recorded):
        await asyncio.sleep(0)
    history = History.from_messages(first.recorded)
    run.cancel()

    second = Story(say("done"), history=history)
    seen = await second.run()

    assert kinds(seen)[:4] == [
        "approval_decision",
        "tool_started",
        "tool_call_output",
        "request_begin",
    ]
    assert words(second.model.requests[0].messages) == ["go", "<c1>", "ran a"]


async def test_second_run_at_the_same_time_is_refused():
    story = Story(call("a"), answer=None)
    run = asyncio.create_task(story.run("go"))
    await asyncio.sleep(0.01)

    with pytest.raises(RuntimeError, match="has not ended"):
        await story.run("and this")

    run.cancel()


async def test_leaving_the_run_early_stops_and_settles_it():
    story = Story(call("a"), answer=None)

    stream = story.loop.run([user_text("go")])
    async for message in stream:
        if message.kind == "request_end":
            break
    await stream.aclose()

    assert kinds(story.recorded)[-3:] == [
        "approval_decision",
        "tool_call_output",
        "abort",
    ]
    assert not story.loop.is_running


async def test_nul_and_half_surrogates_stand_in_history_as_on_record():
    story = Story(
        [*say("a\x00b\ud800c"), *call("a", '{"x": "\ud800"}')], say("done\x00")
    )

    await story.run("hi\x00")

    assert words(story.model.requests[1].messages)[:2] == [
        "hi\u2400",
        "a\u2400b\ufffdc",
    ]
    reread = [type(m).from_json(m.to_json()) for m in story.recorded]
    assert History.from_messages(reread) == story.loop.history
    assert only(story.recorded, "tool_started")
