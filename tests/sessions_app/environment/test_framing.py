"""The frames of an executed call, whatever its tool yields."""

import asyncio
import logging

import pytest

from sessions_app.environment import ToolResult
from tests.sessions_app.environment.calls import call, checked
from traces_app.omnimessage import (
    OmniMessage,
    StopReason,
    tool_call,
    tool_call_output,
    user_text,
)
from traces_app.omnimessage.payloads import PartialToolCallOutput

PNG = "data:image/png;base64,iVBORw0KGgo="


def piece(event_type, output="", tool_call_id="other", **more):
    payload = PartialToolCallOutput(
        role="user",
        event_type=event_type,
        tool_call_id=tool_call_id,
        output=output,
        **more,
    )
    return OmniMessage(payload=payload)


async def run_items(scripted, *items):
    async def execute(args, ctx):
        for item in items:
            if isinstance(item, BaseException):
                raise item
            yield item

    environment, name = scripted(execute)
    return await call(environment, name, {})


async def test_two_increments_are_framed_and_joined(scripted):
    called = await run_items(scripted, "one ", "two")

    types = [frame.event_type for frame in called.frames]
    assert types == ["start", "delta", "delta", "stop"]
    assert called.output == "one two"
    assert called.stop_reason is StopReason.COMPLETED


async def test_foreign_tool_call_id_is_replaced(scripted):
    called = await run_items(scripted, piece("delta", "text", "somebody-else"))

    assert called.output == "text"


async def test_start_and_stop_of_the_tool_are_dropped(scripted):
    called = await run_items(
        scripted, piece("start"), piece("delta", "x"), piece("stop"), "y"
    )

    assert called.deltas == ["x", "y"]


async def test_complete_output_without_deltas_is_streamed_too(scripted):
    output = tool_call_output("other", "whole", StopReason.COMPLETED)

    called = await run_items(scripted, output)

    assert called.deltas == ["whole"]


async def test_complete_output_after_its_deltas_is_not_doubled(scripted):
    output = tool_call_output("other", "whole", StopReason.FAILED)

    called = await run_items(scripted, "who", "le", output)

    assert called.output == "whole"
    assert called.stop_reason is StopReason.FAILED


async def test_raise_keeps_the_text_and_adds_the_error(scripted):
    called = await run_items(scripted, "before", RuntimeError("kaboom"))

    assert called.output == "before\n[tool error] kaboom"
    assert called.deltas == ["before", "\n[tool error] kaboom"]
    assert called.stop_reason is StopReason.FAILED


async def test_message_with_origin_passes_untouched(scripted):
    child = user_text("of the child").with_origin("session-child")

    called = await run_items(scripted, child, "own")

    assert child in called.messages
    assert called.output == "own"


async def test_foreign_message_is_dropped_and_logged(scripted, caplog):
    with caplog.at_level(logging.WARNING):
        called = await run_items(scripted, user_text("not an output"), 5, "own")

    assert called.output == "own"
    assert not any(m.kind == "text" for m in called.messages)
    assert "text, which is not its output" in caplog.text
    assert "int, which is not its output" in caplog.text


async def test_nothing_at_all_is_said(scripted):
    called = await run_items(scripted)

    assert called.output == "[no output]"
    assert called.stop_reason is StopReason.COMPLETED
    assert called.details["output_chars"] == 0


async def test_empty_increment_makes_no_frame(scripted):
    called = await run_items(scripted, "", piece("delta"))

    assert called.deltas == ["[no output]"]


async def test_raise_before_anything_is_awaited_is_output(scripted):
    def execute(args, ctx):
        raise ValueError("at once")

    environment, name = scripted(execute)

    called = await call(environment, name, {})

    assert called.deltas == ["[tool error] at once"]
    assert called.stop_reason is StopReason.FAILED


@pytest.mark.parametrize("result", [None, 5, "text"])
async def test_execute_that_is_no_generator_is_an_error(scripted, result):
    environment, name = scripted(lambda args, ctx: result)

    called = await call(environment, name, {})

    assert called.stop_reason is StopReason.FAILED
    assert called.output.startswith("[tool error] ")


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), GeneratorExit()])
async def test_base_exceptions_do_not_reach_the_loop(scripted, error):
    called = await run_items(scripted, "kept", error)

    assert called.stop_reason is StopReason.FAILED
    assert called.output.startswith("kept\n[tool error] ")


async def test_error_without_words_is_named_by_its_type(scripted):
    called = await run_items(scripted, LookupError())

    assert called.output == "[tool error] LookupError"


async def test_error_that_cannot_be_shown_is_named_by_its_type(scripted):
    class Unspeakable(Exception):
        def __str__(self):
            raise RuntimeError("no words")

    called = await run_items(scripted, Unspeakable())

    assert called.output == "[tool error] Unspeakable"


async def test_cancelled_inner_task_is_an_error_of_the_tool(scripted):
    async def execute(args, ctx):
        inner = asyncio.create_task(asyncio.sleep(10))
        inner.cancel()
        await inner
        yield "never"

    environment, name = scripted(execute)

    called = await call(environment, name, {})

    assert called.stop_reason is StopReason.FAILED
    assert "cancelled" in called.output


async def test_text_no_database_can_hold_is_replaced(scripted):
    called = await run_items(scripted, "a\0b\ud800c", ToolResult(note="n\0"))

    assert called.output == "a\u2400b\ufffdc\nn\u2400"


async def test_text_that_looks_like_an_escape_is_kept(scripted):
    called = await run_items(scripted, r'{"key": "\u0000"}')

    assert called.output == r'{"key": "\u0000"}'


@pytest.mark.parametrize("word", ["malformed", "auth", "fine", 7])
async def test_unknown_self_report_counts_as_failed(scripted, word):
    called = await run_items(scripted, "text", ToolResult(stop_reason=word))

    assert called.stop_reason is StopReason.FAILED


async def test_frames_arrive_while_the_tool_works(scripted):
    may_end = asyncio.Event()

    async def execute(args, ctx):
        yield "early"
        await may_end.wait()
        yield "late"

    environment, name = scripted(execute)
    messages = []
    async for message in environment.execute_tool(tool_call(name, "{}", "call_7")):
        messages.append(message)
        if getattr(message.payload, "output", "") == "early":
            may_end.set()

    assert checked(messages, "call_7").deltas == ["early", "late"]


async def test_cleanup_of_the_tool_runs(scripted):
    cleaned = []

    async def execute(args, ctx):
        try:
            yield "text"
        finally:
            await asyncio.sleep(0)
            cleaned.append(True)

    environment, name = scripted(execute)

    await call(environment, name, {})

    assert cleaned == [True]


async def test_calls_run_side_by_side(scripted):
    arrived = asyncio.Barrier(3)

    async def execute(args, ctx):
        await arrived.wait()
        yield ctx.tool_call_id

    environment, name = scripted(execute)
    ids = ["call_a", "call_b", "call_c"]

    outputs = await asyncio.gather(
        *(call(environment, name, {}, tool_call_id=i) for i in ids)
    )

    assert [called.output for called in outputs] == ids


async def test_leaving_the_stream_early_stops_the_tool(scripted):
    stopped = asyncio.Event()

    async def execute(args, ctx):
        try:
            yield "text"
            await asyncio.sleep(60)
        finally:
            stopped.set()

    environment, name = scripted(execute)
    stream = environment.execute_tool(tool_call(name, "{}", "call_7"))
    async for message in stream:
        if getattr(message.payload, "output", ""):
            break

    await stream.aclose()

    assert stopped.is_set()


async def test_cancelling_the_consumer_goes_on(scripted):
    started = asyncio.Event()

    async def execute(args, ctx):
        started.set()
        await asyncio.sleep(60)
        yield ""

    environment, name = scripted(execute)
    task = asyncio.create_task(call(environment, name, {}))
    await started.wait()
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task


async def test_only_a_tool_call_can_be_executed(environment):
    with pytest.raises(TypeError, match="tool_call"):
        await anext(environment.execute_tool(user_text("hello")))
