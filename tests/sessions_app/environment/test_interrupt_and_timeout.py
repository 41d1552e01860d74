"""Interrupt before timeout before error before what the tool says itself."""

import asyncio
import time

import pytest

from sessions_app.environment import AbortSignal, ToolResult
from tests.sessions_app.environment.calls import call, poll, run, start
from traces_app.omnimessage import StopReason

INTERRUPTED = "[interrupted: tool aborted by user]"


def fired_after(seconds: float) -> AbortSignal:
    signal = AbortSignal()
    asyncio.get_running_loop().call_later(seconds, signal.abort)
    return signal


async def wait_then_raise(args, ctx):
    await ctx.signal.wait()
    raise RuntimeError("told to stop")
    yield ""


async def ignore_everything(args, ctx):
    yield "before"
    while True:
        try:
            await asyncio.sleep(0.05)
            yield "late"
        except asyncio.CancelledError:
            break


async def test_timeout_keeps_the_text_and_names_the_limit(limited):
    began = time.monotonic()

    called = await run(limited(timeout_ms=200), "echo begin; sleep 5")

    assert time.monotonic() - began < 3
    assert called.stop_reason is StopReason.TIMEOUT
    text, marker = called.output.split("\n")
    assert text == "begin"
    assert "200 ms" in marker
    assert called.details["running"] is False


@pytest.mark.parametrize("timeout_ms", [0, -1])
async def test_disabled_timeout_lets_a_command_end(limited, timeout_ms):
    environment = limited(timeout_ms=timeout_ms)

    called = await run(environment, "sleep 0.6; echo end", yield_time_ms=10_000)

    assert called.output == "end\n"


async def test_interrupt_ends_the_call_at_once(environment):
    began = time.monotonic()

    called = await call(
        environment, "exec_command", {"cmd": "sleep 5"}, signal=fired_after(0.1)
    )

    assert time.monotonic() - began < 2
    assert called.output == INTERRUPTED
    assert called.stop_reason is StopReason.ABORTED
    assert called.details["running"] is False


async def test_error_after_an_interrupt_is_not_shown(scripted):
    environment, name = scripted(wait_then_raise)

    called = await call(environment, name, {}, signal=fired_after(0.02))

    assert called.output == INTERRUPTED
    assert called.stop_reason is StopReason.ABORTED


async def test_error_after_a_timeout_is_not_shown(scripted):
    environment, name = scripted(wait_then_raise, timeoutMs=20)

    called = await call(environment, name, {})

    assert called.stop_reason is StopReason.TIMEOUT
    assert "told to stop" not in called.output
    assert "20 ms" in called.output


async def test_interrupt_beats_a_timeout_that_came_before(scripted):
    async def execute(args, ctx):
        await ctx.signal.wait()
        signal.abort()
        yield "text"

    signal = AbortSignal()
    environment, name = scripted(execute, timeoutMs=20)

    called = await call(environment, name, {}, signal=signal)

    assert called.output == f"text\n{INTERRUPTED}"
    assert called.stop_reason is StopReason.ABORTED


async def test_interrupt_beats_a_self_report(scripted):
    async def execute(args, ctx):
        await ctx.signal.wait()
        yield ToolResult(stop_reason="failed", note="[note]")

    environment, name = scripted(execute)

    called = await call(environment, name, {}, signal=fired_after(0.02))

    assert called.output == f"[note]\n{INTERRUPTED}"
    assert called.stop_reason is StopReason.ABORTED


async def test_tool_that_returns_normally_after_an_interrupt_is_aborted(scripted):
    async def execute(args, ctx):
        await ctx.signal.wait()
        yield "text"

    environment, name = scripted(execute)

    called = await call(environment, name, {}, signal=fired_after(0.02))

    assert called.output == f"text\n{INTERRUPTED}"


async def test_fired_signal_keeps_the_tool_from_starting(scripted):
    started = []

    async def execute(args, ctx):
        started.append(True)
        yield ""

    environment, name = scripted(execute)
    signal = AbortSignal()
    signal.abort()

    called = await call(environment, name, "{broken", signal=signal)

    assert called.output == INTERRUPTED
    assert called.stop_reason is StopReason.ABORTED
    assert started == []


async def test_fired_signal_starts_no_process(environment, workspace):
    signal = AbortSignal()
    signal.abort()

    await call(environment, "exec_command", {"cmd": "touch made"}, signal=signal)

    assert list(workspace.iterdir()) == []


async def test_tool_that_ignores_the_timeout_is_cut_off(scripted):
    environment, name = scripted(ignore_everything, timeoutMs=100)
    began = time.monotonic()

    called = await call(environment, name, {})

    took = time.monotonic() - began
    assert 1 <= took < 4
    assert called.output.startswith("before")
    assert called.stop_reason is StopReason.TIMEOUT


async def test_tool_that_ignores_an_interrupt_is_cut_off(scripted):
    environment, name = scripted(ignore_everything)
    began = time.monotonic()

    called = await call(environment, name, {}, signal=fired_after(0.02))

    assert time.monotonic() - began < 4
    assert called.stop_reason is StopReason.ABORTED


async def test_tool_that_swallows_its_cancellation_holds_nobody(scripted):
    may_end = asyncio.Event()

    async def execute(args, ctx):
        while not may_end.is_set():
            try:
                await may_end.wait()
            except asyncio.CancelledError:
                yield "still here"

    environment, name = scripted(execute, timeoutMs=20)

    called = await call(environment, name, {})
    may_end.set()
    await asyncio.sleep(0)

    assert called.stop_reason is StopReason.TIMEOUT
    assert "still here" not in called.output


async def test_exit_in_the_cleanup_of_a_cut_off_tool_stays_inside(scripted):
    async def execute(args, ctx):
        try:
            await asyncio.sleep(60)
            yield ""
        finally:
            raise SystemExit(2)

    environment, name = scripted(execute, timeoutMs=20)

    called = await call(environment, name, {})

    assert called.stop_reason is StopReason.TIMEOUT


async def test_tool_learns_why_it_shall_end(scripted):
    async def execute(args, ctx):
        await ctx.signal.wait()
        yield str(ctx.signal.reason)

    environment, name = scripted(execute, timeoutMs=20)

    timed_out = await call(environment, name, {})
    interrupted = await call(environment, name, {}, signal=fired_after(0.001))

    assert timed_out.output.startswith("timeout\n")
    assert interrupted.output.startswith("interrupt\n")


async def test_interrupt_with_a_child_that_holds_the_pipes_returns(environment):
    began = time.monotonic()

    called = await call(
        environment,
        "exec_command",
        {"cmd": "(trap '' TERM; sleep 30) & sleep 30"},
        signal=fired_after(0.2),
    )

    assert time.monotonic() - began < 2
    assert called.stop_reason is StopReason.ABORTED


async def test_interrupted_poll_leaves_the_process_alone(environment):
    process = await start(environment, "sleep 30")

    called = await call(
        environment,
        "input_command",
        {"process_id": process.process_id},
        signal=fired_after(0.05),
    )

    assert called.stop_reason is StopReason.ABORTED
    assert called.output.endswith(INTERRUPTED)
    assert called.details["running"] is True
    assert (await poll(environment, process, yield_time_ms=250)).details["running"]


async def test_closing_the_environment_aborts_running_calls(environment):
    running = asyncio.create_task(run(environment, "echo text; sleep 30"))
    await asyncio.sleep(0.2)

    await environment.aclose()

    called = await running
    assert called.stop_reason is StopReason.ABORTED
    assert called.output == f"text\n{INTERRUPTED}"


class TestAbortSignal:
    def test_first_reason_stays(self):
        signal = AbortSignal()

        signal.abort("stream")
        signal.abort("interrupt")

        assert signal.aborted
        assert signal.reason == "stream"

    def test_callback_is_called_once(self):
        signal, called = AbortSignal(), []
        signal.add_callback(lambda: called.append(1))

        signal.abort()
        signal.abort()

        assert called == [1]

    def test_late_callback_is_called_at_once(self):
        signal, called = AbortSignal(), []
        signal.abort()

        signal.add_callback(lambda: called.append(1))

        assert called == [1]

    def test_removed_callback_is_not_called(self):
        signal, called = AbortSignal(), []

        def callback():
            called.append(1)

        signal.add_callback(callback)
        signal.remove_callback(callback)
        signal.remove_callback(callback)
        signal.abort()

        assert called == []

    async def test_all_who_wait_are_woken(self):
        signal = AbortSignal()
        waiting = [asyncio.create_task(signal.wait()) for _ in range(3)]
        await asyncio.sleep(0)

        signal.abort()

        await asyncio.gather(*waiting)
        await signal.wait()
