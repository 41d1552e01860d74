"""input_subagent: follow a child agent in the background, or give it another task."""

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
from sessions_app.environment.subagent_table import SubagentTable
from sessions_app.environment.tool import ToolContext, ToolError, ToolResult
from traces_app.omnimessage import OmniMessage

POLL_YIELD_MS = 10_000
TASK_YIELD_MS = 300_000


class InputSubagent:
    """Waits for news of a child; stopping the call does not stop the child."""

    name = "input_subagent"
    DETAILS: ClassVar[dict[str, Any]] = {"running": False}

    def __init__(self, definition: ToolDefinition, table: SubagentTable) -> None:
        self._timeout_ms = definition.timeout_ms
        self._table = table

    async def execute(
        self, args: dict[str, Any], ctx: ToolContext
    ) -> AsyncIterator[str | OmniMessage | ToolResult]:
        """Hand over a task if there is one, then wait for the child."""
        subagent_id = text_argument(args, "subagent_id")
        prompt = optional_text(args, "prompt")
        has_task = bool(prompt.strip())
        wait_ms = clamp_yield_ms(
            optional_number(args, "yield_time_ms"),
            default=TASK_YIELD_MS if has_task else POLL_YIELD_MS,
            timeout_ms=self._timeout_ms,
        )
        session = self._table.find(subagent_id)
        ctx.details.update(session.facts())
        if session.is_polled:
            raise ToolError(
                f"another call is waiting for subagent {subagent_id}; one at a time, "
                "issue this one again when that has returned"
            )
        if has_task:
            if session.is_running:
                raise ToolError(
                    f"subagent {subagent_id} is still running; it takes the next task "
                    "once it is idle, so wait for it with an empty prompt"
                )
            session.start(prompt, ctx.approve)
            ctx.details.update(session.facts())
        deadline = asyncio.get_running_loop().time() + wait_ms / 1000
        async for message in session.follow(deadline=deadline, ctx=ctx):
            yield message
        ctx.details.update(session.facts())
        if ctx.signal.aborted:
            return
        text, result = await session.report(ctx)
        yield text
        yield result
