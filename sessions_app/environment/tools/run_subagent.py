"""run_subagent: give a task to a child agent."""

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
from sessions_app.environment.child_session import ChildWish
from sessions_app.environment.subagent_table import SubagentTable
from sessions_app.environment.tool import ToolContext, ToolError, ToolResult
from traces_app.omnimessage import OmniMessage

DEFAULT_YIELD_MS = 300_000


class RunSubagent:
    """Starts a child; what outlives the wait goes to the background."""

    name = "run_subagent"
    DETAILS: ClassVar[dict[str, Any]] = {"running": False}

    def __init__(self, definition: ToolDefinition, table: SubagentTable) -> None:
        self._timeout_ms = definition.timeout_ms
        self._table = table

    async def execute(
        self, args: dict[str, Any], ctx: ToolContext
    ) -> AsyncIterator[str | OmniMessage | ToolResult]:
        """Follow the child until it ends or the wait is over."""
        prompt = text_argument(args, "prompt")
        if not prompt.strip():
            raise ToolError("invalid arguments: prompt: must not be empty")
        wish = _wish(args, ctx.tool_call_id)
        wait_ms = clamp_yield_ms(
            optional_number(args, "yield_time_ms"),
            default=DEFAULT_YIELD_MS,
            timeout_ms=self._timeout_ms,
        )
        deadline = asyncio.get_running_loop().time() + wait_ms / 1000
        session = await self._table.make(wish)
        try:
            session.start(prompt, ctx.approve)
            ctx.details.update(session.facts())
            async for message in session.follow(deadline=deadline, ctx=ctx):
                yield message
            if ctx.signal.aborted:
                return
            text, result = await session.report(ctx)
            yield text
            yield result
        finally:
            if ctx.signal.aborted or not session.is_background:
                ctx.details.update(running=False)
                self._table.release(session)


def _wish(args: dict[str, Any], tool_call_id: str) -> ChildWish:
    """Return the child that is asked for; raises `ToolError` for half a model."""
    model_id = optional_text(args, "model_id").strip() or None
    provider = optional_text(args, "provider").strip() or None
    if (model_id is None) != (provider is None):
        given, missing = (
            ("model_id", "provider") if model_id else ("provider", "model_id")
        )
        raise ToolError(
            f"invalid arguments: {given} without {missing}: give both, or neither to "
            "use your own model; no subagent was started"
        )
    return ChildWish(
        tool_call_id=tool_call_id,
        agent_id=optional_text(args, "agent_id").strip() or None,
        provider=provider,
        model_id=model_id,
    )
