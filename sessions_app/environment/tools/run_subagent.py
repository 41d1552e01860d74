"""run_subagent: give a task to a child agent."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from sessions_app.config.tool_definition import ToolDefinition
from sessions_app.environment.tool import ToolContext, ToolError


class RunSubagent:
    """Needs sessions to start a child in; this Environment has none."""

    name = "run_subagent"

    def __init__(self, definition: ToolDefinition) -> None:
        pass

    def execute(self, args: dict[str, Any], ctx: ToolContext) -> AsyncIterator[str]:
        """Say that nothing can be done."""
        raise ToolError(
            "this environment has no partner for run_subagent: it runs without sessions, so no child agent can be started"
        )
