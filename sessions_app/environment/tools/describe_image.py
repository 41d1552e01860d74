"""describe_image: have a vision model tell what an image shows."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from sessions_app.config.tool_definition import ToolDefinition
from sessions_app.environment.tool import ToolContext, ToolError


class DescribeImage:
    """Needs a vision model; this Environment has none."""

    name = "describe_image"

    def __init__(self, definition: ToolDefinition) -> None:
        pass

    def execute(self, args: dict[str, Any], ctx: ToolContext) -> AsyncIterator[str]:
        """Say that nothing can be done."""
        raise ToolError(
            "this environment has no partner for describe_image: no vision_model is configured for it"
        )
