"""One execution: frames of a tool that was left behind are not shown any more."""

from __future__ import annotations

import asyncio

from sessions_app.engine import History
from sessions_app.engine.channel import Channel
from sessions_app.engine.tape import Tape
from sessions_app.engine.tool_run import ToolRun
from sessions_app.environment.tool import AbortSignal
from tests.sessions_app.engine.scripted import Record, Tools, call, say
from traces_app.omnimessage import OmniMessage, StopReason


def tape_of(stream: Channel[OmniMessage]) -> Tape:
    return Tape(record=Record(), history=History(), stream=stream)


async def run_to_end(tools, stream, signal=None, grace_s=1.0) -> OmniMessage:
    run = ToolRun(
        call("a")[-1], edited=None, tools=tools, tape=tape_of(stream), grace_s=grace_s
    )
    return await run.run(signal or AbortSignal(), approve=lambda _: None)


async def drained(stream: Channel[OmniMessage]) -> list[OmniMessage]:
    stream.close()
    return [message async for message in iterate(stream)]


async def iterate(stream):
    while (message := await stream.get()) is not None:
        yield message


async def test_tool_that_was_left_behind_shows_nothing_any_more():
    tools = Tools()
    honest = tools.execute_tool
    release = asyncio.Event()
    ended = asyncio.Event()

    async def execute_tool(tool_call, signal=None, approve=None):
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue
        async for frame in honest(tool_call, signal=AbortSignal()):
            yield frame
        ended.set()

    tools.execute_tool = execute_tool
    signal = AbortSignal()
    signal.abort()
    stream: Channel[OmniMessage] = Channel()

    output = await run_to_end(tools, stream, signal, grace_s=0.01)
    release.set()
    await ended.wait()

    assert output.payload.stop_reason is StopReason.ABORTED
    assert await drained(stream) == []


async def test_message_of_a_child_passes_through_and_is_no_output():
    tools = Tools()
    honest = tools.execute_tool
    from_child = say("hello from below")[-1].with_origin("child")

    async def execute_tool(tool_call, signal=None, approve=None):
        yield from_child
        yield say("not from a child")[-1]
        async for frame in honest(tool_call, signal=signal):
            yield frame

    tools.execute_tool = execute_tool
    stream: Channel[OmniMessage] = Channel()

    output = await run_to_end(tools, stream)

    seen = await drained(stream)
    assert seen[0] == from_child
    assert {m.kind for m in seen[1:]} == {"partial_tool_call_output"}
    assert output.payload.output == "ran a"


async def test_environment_without_an_output_counts_as_a_failed_call():
    tools = Tools()

    async def execute_tool(tool_call, signal=None, approve=None):
        for message in ():
            yield message

    tools.execute_tool = execute_tool

    output = await run_to_end(tools, Channel())

    assert output.payload.stop_reason is StopReason.FAILED
