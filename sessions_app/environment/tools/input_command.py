"""input_command: follow and drive a command that went to the background."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import Any, ClassVar

from sessions_app.config.tool_definition import (
    DEFAULT_MAX_OUTPUT_LENGTH,
    ToolDefinition,
)
from sessions_app.environment.arguments import (
    optional_number,
    optional_text,
    text_argument,
)
from sessions_app.environment.background import clamp_yield_ms
from sessions_app.environment.command_session import (
    CTRL_C,
    CTRL_D,
    CommandSession,
    Follower,
)
from sessions_app.environment.output_reader import QUIET_S
from sessions_app.environment.process_group import Exit
from sessions_app.environment.process_table import ProcessTable
from sessions_app.environment.tool import ToolContext, ToolError, ToolResult
from sessions_app.environment.tools.exec_command import (
    exit_facts,
    exit_note,
    still_running,
)
from sessions_app.environment.truncation import effective_cap
from traces_app.omnimessage import StopReason

POLL_YIELD_MS = 5000
WRITE_YIELD_MS = 250


class InputCommand:
    """Types into a background command and returns what it printed since."""

    name = "input_command"
    KEEPS_LOG: ClassVar[bool] = True
    DETAILS: ClassVar[dict[str, Any]] = {"running": False}

    def __init__(self, definition: ToolDefinition, table: ProcessTable) -> None:
        self._timeout_ms = definition.timeout_ms
        self._table = table

    async def execute(
        self, args: dict[str, Any], ctx: ToolContext
    ) -> AsyncIterator[str | ToolResult]:
        """Deliver `chars`, then wait for output or for the end of the command."""
        process_id = text_argument(args, "process_id")
        chars = optional_text(args, "chars")
        if chars:
            ctx.details["delivered_chars"] = 0  # also when it is refused below
        wait_ms = clamp_yield_ms(
            optional_number(args, "yield_time_ms"),
            default=WRITE_YIELD_MS if chars else POLL_YIELD_MS,
            timeout_ms=self._timeout_ms,
        )
        how = self._table.exit_before(process_id)
        if how is not None:
            ctx.details["process_id"] = process_id
            yield _repeat(process_id, how, checked_chars(chars), ctx)
            return
        session = self._table.find(process_id)
        ctx.details["process_id"] = process_id
        ctx.details["running"] = self._table.is_reachable(session)
        chars = checked_chars(chars)
        if session.is_polled:
            raise ToolError(
                f"another call is waiting for process {process_id}; one at a time, "
                "issue this one again when that has returned"
            )
        if session.is_exit_told and session.exit is not None:
            yield _repeat(process_id, session.exit, chars, ctx)
            return
        ctx.artifact = session.artifact
        self._table.bind(ctx.tool_call_id, session)
        deadline = asyncio.get_running_loop().time() + wait_ms / 1000
        shown = ""
        with Follower(session, deadline=deadline, abort=ctx.signal) as follower:
            delivered = await session.send(chars, deadline=deadline, abort=ctx.signal)
            while text := await follower.next_text():
                shown = text
                yield text
            async for text in self._rest(session, shown, ctx):
                yield text
        yield self._state(session, chars, delivered, ctx)

    async def _rest(
        self, session: CommandSession, shown: str, ctx: ToolContext
    ) -> AsyncIterator[str]:
        """Yield what is left unread, with a marker where the window leaves a gap."""
        session.settle(0 if session.exit else QUIET_S)
        head = session.unread.take_head()
        total, tail = session.unread.total, session.unread.tail()
        ctx.details["output_chars"] = total
        ctx.details["log"] = self._table.mark_read(session)
        yield head
        window = self._table.poll_window
        if total > window.cap and window.is_split:
            artifact = await session.artifact()
            ctx.details["truncated"] = True
            if artifact is not None:
                ctx.details["artifact"] = artifact.to_details()
            marker, length = window.gap(head or shown, total=total, artifact=artifact)
            tail = marker + tail[-length:]
        yield tail

    def _state(
        self, session: CommandSession, chars: str, delivered: int, ctx: ToolContext
    ) -> ToolResult:
        """Return what became of the input and how the command stands."""
        notes = _delivery(chars, delivered, ctx, has_ended=session.exit is not None)
        how = session.exit if session.has_ended else None
        ctx.details["running"] = self._table.is_reachable(session)
        if how is None:
            return ToolResult(note="\n".join([*notes, still_running(session)]))
        session.is_exit_told = True
        ctx.details.update(exit_facts(how))
        is_good = how.exit_code == 0
        return ToolResult(
            stop_reason=StopReason.COMPLETED if is_good else StopReason.FAILED,
            note="\n".join([*notes, exit_note(how)]),
        )


def poll_cap(definitions: Iterable[ToolDefinition]) -> int:
    """Return how many characters a poll may return under these definitions."""
    for definition in definitions:
        if definition.name == InputCommand.name:
            return effective_cap(definition.max_output_length)
    return DEFAULT_MAX_OUTPUT_LENGTH


def checked_chars(chars: str) -> str:
    """Return what is to be typed; raises `ToolError` for mixed control characters."""
    if len(chars) > 1 and (CTRL_C in chars or CTRL_D in chars):
        raise ToolError(
            "Ctrl-C (\\u0003) and Ctrl-D (\\u0004) must be sent alone; nothing was written"
        )
    # Half a surrogate pair cannot be encoded; a NUL is typed as it is.
    return chars.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _delivery(
    chars: str, delivered: int, ctx: ToolContext, *, has_ended: bool
) -> list[str]:
    """Note how much of the input was delivered; return a line when it was not all."""
    if not chars:
        return []
    ctx.details["delivered_chars"] = delivered
    if delivered == len(chars):
        return []
    why = "the process has exited" if has_ended else "its input is closed or full"
    if not delivered:
        return [f"[input not delivered: {why}]"]
    facts = f"{delivered} of {len(chars)} characters"
    return [f"[input delivered in part, {facts}, the rest was withdrawn: {why}]"]


def _repeat(process_id: str, how: Exit, chars: str, ctx: ToolContext) -> ToolResult:
    """Return the answer about a process whose end was told before."""
    notes = _delivery(chars, 0, ctx, has_ended=True)
    ctx.details["running"] = False
    ctx.details.update(exit_facts(how))
    if how.signal is not None:
        state = f"[process {process_id} was already terminated by signal {how.signal}]"
    else:
        state = f"[process {process_id} already exited with code {how.exit_code}]"
    is_failed = bool(chars) and how.exit_code != 0
    return ToolResult(
        stop_reason=StopReason.FAILED if is_failed else StopReason.COMPLETED,
        note="\n".join([*notes, state]),
    )
