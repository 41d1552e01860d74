"""exec_command: run a shell command in the workspace."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any, ClassVar

from sessions_app.config.tool_definition import ToolDefinition
from sessions_app.environment.arguments import (
    optional_number,
    optional_text,
    text_argument,
)
from sessions_app.environment.background import clamp_yield_ms
from sessions_app.environment.command_session import CommandSession, Follower
from sessions_app.environment.output_reader import QUIET_S
from sessions_app.environment.process_group import Exit
from sessions_app.environment.process_table import ProcessTable
from sessions_app.environment.tool import ToolContext, ToolError, ToolResult
from sessions_app.environment.truncation import effective_cap
from sessions_app.environment.workdir import checked_directory
from traces_app.omnimessage import StopReason

DEFAULT_YIELD_MS = 60_000


class ExecCommand:
    """Runs `bash -lc cmd`; what outlives the wait goes to the background."""

    name = "exec_command"
    KEEPS_LOG: ClassVar[bool] = True
    DETAILS: ClassVar[dict[str, Any]] = {"running": False}

    def __init__(self, definition: ToolDefinition, table: ProcessTable) -> None:
        self._timeout_ms = definition.timeout_ms
        self._cap = effective_cap(definition.max_output_length)
        self._table = table

    async def execute(
        self, args: dict[str, Any], ctx: ToolContext
    ) -> AsyncIterator[str | ToolResult]:
        """Start the command and follow it until it ends or the wait is over."""
        cmd = text_argument(args, "cmd")
        if "\0" in cmd:
            raise ToolError("cmd holds a NUL character; nothing was started")
        workdir = optional_text(args, "workdir")
        cwd = checked_directory(ctx.workspace_dir, workdir)
        wait_ms = clamp_yield_ms(
            optional_number(args, "yield_time_ms"),
            default=DEFAULT_YIELD_MS,
            timeout_ms=self._timeout_ms,
        )
        deadline = asyncio.get_running_loop().time() + wait_ms / 1000
        session = await self._table.start(
            cmd, cwd=cwd, tool_call_id=ctx.tool_call_id, cap=self._cap
        )
        ctx.artifact = session.artifact
        is_kept = False
        try:
            with Follower(session, deadline=deadline, abort=ctx.signal) as follower:
                while text := await follower.next_text():
                    yield text
            is_kept = not session.has_ended and not ctx.signal.aborted
            session.settle(QUIET_S if is_kept else 0)
            yield session.unread.take_head()
            ctx.details["output_chars"] = session.unread.total
            ctx.details["log"] = self._table.mark_read(session)
            if is_kept:
                self._table.keep(session)
                ctx.details.update(running=True, process_id=session.process_id)
                yield ToolResult(note=still_running(session))
            elif session.has_ended and session.exit is not None:
                ctx.details.update(exit_facts(session.exit))
                yield ended(session.exit)
        finally:
            if not is_kept:
                ctx.on_close = session.discard
                self._table.release(session)


def still_running(session: CommandSession) -> str:
    """Return the note of a command that outlives the call."""
    return f"[process still running with process_id {session.process_id}]"


def exit_facts(how: Exit) -> dict[str, Any]:
    """Return how a command ended as structured facts."""
    if how.signal is not None:
        return {"signal": how.signal}
    return {"exit_code": how.exit_code}


def exit_note(how: Exit) -> str:
    """Return how a command ended in words."""
    if how.signal is not None:
        return f"[terminated by signal {how.signal}]"
    return f"[exit code: {how.exit_code}]"


def ended(how: Exit) -> ToolResult:
    """Return the result of a command; success needs no words."""
    if how.exit_code == 0:
        return ToolResult()
    return ToolResult(stop_reason=StopReason.FAILED, note=exit_note(how))
