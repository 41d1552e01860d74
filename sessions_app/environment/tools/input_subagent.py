"""input_subagent: follow a child agent."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from sessions_app.config.tool_definition import ToolDefinition
from sessions_app.environment.tool import ToolContext, ToolError


class InputSubagent:
    """Needs sessions that hold the children; this Environment has none."""

    name = "input_subagent"

    def __init__(self, definition: ToolDefinition) -> None:
        pass

    def execute(self, args: dict[str, Any], ctx: ToolContext) -> AsyncIterator[str]:
        """Say that nothing can be done."""
        raise ToolError(
            "this environment has no partner for input_subagent: it runs without sessions, so there is no child agent"
        )
