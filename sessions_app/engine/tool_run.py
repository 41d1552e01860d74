"""Runs one approved call and brings home exactly one output, whatever the tool does."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Any, Protocol

from sessions_app.engine.decision import Approve
from sessions_app.engine.digest import arguments_sha256
from sessions_app.engine.messages import call_id
from sessions_app.engine.stopping import ends
from sessions_app.engine.tape import Tape
from sessions_app.environment.tool import AbortSignal
from traces_app.omnimessage import OmniMessage, StopReason, event, tool_call_output
from traces_app.omnimessage import payloads as p

logger = logging.getLogger(__name__)
EDITED = "arguments edited by the approver\n"
INTERRUPTED = "[interrupted: tool aborted by user]"


class Tools(Protocol):
    """What the engine needs of an Environment."""

    def tool_list(self) -> Sequence[Mapping[str, Any]]:
        """Return name, description and parameters of each tool."""
        ...

    def workdir_of(self, name: str, arguments: str) -> str | None:
        """Return the absolute directory a command would run in, None elsewhere."""
        ...

    def execute_tool(
        self,
        tool_call: OmniMessage,
        signal: AbortSignal | None = None,
        approve: Approve | None = None,
    ) -> AsyncGenerator[OmniMessage, None]:
        """Run the call: pieces, then one complete output."""
        ...


def digest_of(tools: Tools, call: OmniMessage, arguments: str | None = None) -> str:
    """Return the digest of what the call, or its edited arguments, would run."""
    payload = call.payload
    assert isinstance(payload, p.ToolCall)
    text = payload.arguments if arguments is None else arguments
    workdir = tools.workdir_of(payload.name, text)
    return arguments_sha256(payload.name, workdir, text)


class ToolRun:
    """One execution; `edited` replaces the arguments the model wrote.

    `grace_s` is for an Environment that does not end an interrupted tool itself.
    """

    def __init__(
        self,
        call: OmniMessage,
        *,
        edited: str | None,
        tools: Tools,
        tape: Tape,
        grace_s: float,
    ) -> None:
        self._call = call
        self._edited = edited
        self._tools = tools
        self._tape = tape
        self._grace_s = grace_s
        self._shown: list[str] = []
        self._has_started = False
        self._has_stopped = False
        self._is_over = False  # frames of a tool that was left behind are dropped
        self._output: OmniMessage | None = None

    async def run(self, stop: AbortSignal, approve: Approve) -> OmniMessage:
        """Return the output; promptly once `stop` fires."""
        task = asyncio.create_task(self._drive(stop, approve))
        has_ended = await ends(task, stop, grace_s=self._grace_s)
        self._is_over = True
        if not has_ended:
            return await self._close(StopReason.ABORTED, INTERRUPTED)
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.error("The environment failed in a call", exc_info=error)
            words = f"[tool error] {type(error).__name__}: {error}"
            return await self._close(StopReason.FAILED, words)
        if self._output is None:
            words = "[tool error] the environment gave no output"
            return await self._close(StopReason.FAILED, words)
        return self._output

    async def _drive(self, stop: AbortSignal, approve: Approve) -> None:
        call = self._call
        if self._edited is not None:
            assert isinstance(call.payload, p.ToolCall)
            payload = replace(call.payload, arguments=self._edited)
            call = replace(call, payload=payload)
        frames = self._tools.execute_tool(call, signal=stop, approve=approve)
        async with aclosing(frames):
            async for frame in frames:
                if not self._is_over:
                    await self._take(frame)

    async def _take(self, frame: OmniMessage) -> None:
        if frame.origin:
            await self._carry(frame)
            return
        match frame.payload:
            case p.PartialToolCallOutput() as piece:
                self._has_started = True
                self._has_stopped = piece.event_type == "stop"
                self._shown.append(piece.output)
                await self._tape.piece(frame)
                if piece.event_type == "start" and self._edited is not None:
                    await self._show("delta", EDITED)
            case p.ToolCallOutput() as output:
                self._output = replace(frame, payload=self._marked(output))
            case _:
                logger.warning("A tool call yielded a %s; dropped", frame.kind)

    async def _carry(self, message: OmniMessage) -> None:
        """Show a message of a child; a new child gets one pointer in the record."""
        is_first = isinstance(message.payload, p.SessionMeta)
        if is_first and len(message.origin) == 1:
            (session_id,) = message.origin
            pointer = p.Subagent(
                session_id=session_id, tool_call_id=call_id(self._call)
            )
            await self._tape.record(event(pointer))
        await self._tape.piece(message)

    def _marked(self, output: p.ToolCallOutput) -> p.ToolCallOutput:
        if self._edited is None:
            return output
        details = {**output.details, "arguments_edited": True}
        return replace(output, output=EDITED + output.output, details=details)

    async def _close(self, reason: StopReason, words: str) -> OmniMessage:
        """End the frames that were shown and return an output of the same text."""
        text = "".join(self._shown)
        marker = words if not text or text.endswith("\n") else f"\n{words}"
        if self._has_started and not self._has_stopped:
            await self._show("delta", marker)
            await self._show("stop", "", reason)
        return tool_call_output(
            call_id(self._call), text + marker, reason, synthetic="environment"
        )

    async def _show(
        self, event_type: p.EventType, text: str, reason: StopReason | None = None
    ) -> None:
        self._shown.append(text)
        piece = p.PartialToolCallOutput(
            role="user",
            event_type=event_type,
            tool_call_id=call_id(self._call),
            output=text,
            stop_reason=reason,
        )
        await self._tape.piece(OmniMessage(payload=piece))
