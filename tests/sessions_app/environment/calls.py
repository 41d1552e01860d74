"""Runs calls through an Environment and checks what holds for every one of them."""

import json
from dataclasses import dataclass
from typing import Any

from sessions_app.environment import AbortSignal, Environment
from traces_app.omnimessage import OmniMessage, StopReason, tool_call


@dataclass(frozen=True, kw_only=True)
class Called:
    """What one call gave."""

    messages: list[OmniMessage]  # all of the stream
    frames: list[Any]  # payloads of its partial outputs
    complete: Any  # the payload of its output

    @property
    def output(self) -> str:
        return self.complete.output

    @property
    def stop_reason(self) -> StopReason:
        return self.complete.stop_reason

    @property
    def details(self) -> dict[str, Any]:
        return self.complete.details

    @property
    def deltas(self) -> list[str]:
        return [frame.output for frame in self.frames if frame.output]

    @property
    def process_id(self) -> str:
        return self.details["process_id"]


async def call(
    environment: Environment,
    name: str,
    arguments: dict[str, Any] | str,
    *,
    signal: AbortSignal | None = None,
    tool_call_id: str = "call_7",
) -> Called:
    """Execute one call to its end."""
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    message = tool_call(name, text, tool_call_id)
    messages = [m async for m in environment.execute_tool(message, signal=signal)]
    return checked(messages, tool_call_id)


def checked(messages: list[OmniMessage], tool_call_id: str) -> Called:
    """Return the call after checking the frames that every call has."""
    own = [message.payload for message in messages if not message.origin]
    *frames, complete = own
    assert [frame.event_type for frame in frames] == [
        "start",
        *["delta"] * (len(frames) - 2),
        "stop",
    ]
    assert {payload.tool_call_id for payload in own} == {tool_call_id}
    assert complete.KIND == "tool_call_output"
    assert "".join(frame.output for frame in frames) == complete.output
    assert [image for frame in frames for image in frame.images] == list(
        complete.images
    )
    assert all(frame.output or frame.images for frame in frames[1:-1])
    assert frames[-1].stop_reason == complete.stop_reason
    assert complete.output
    assert {"truncated", "output_chars", "duration_ms"} <= complete.details.keys()
    return Called(messages=messages, frames=frames, complete=complete)


async def run(environment: Environment, cmd: str, **arguments: Any) -> Called:
    """Run a command."""
    return await call(environment, "exec_command", {"cmd": cmd, **arguments})


async def start(environment: Environment, cmd: str) -> Called:
    """Start a command that outlives the shortest wait."""
    called = await run(environment, cmd, yield_time_ms=250)
    assert called.details["running"] is True, called.output
    return called


async def poll(
    environment: Environment, process: Called | str, chars: str = "", **more: Any
) -> Called:
    """Type into a background command, or only read it."""
    process_id = process if isinstance(process, str) else process.process_id
    arguments = {"process_id": process_id, "chars": chars, **more}
    return await call(environment, "input_command", arguments)


def failed_with(called: Called, *words: str) -> None:
    """Check that the call failed, gave no image, and says the words."""
    assert called.stop_reason is StopReason.FAILED
    assert called.complete.images == ()
    for word in words:
        assert word in called.output
