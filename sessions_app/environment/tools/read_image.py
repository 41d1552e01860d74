"""read_image: look at an image."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from sessions_app.config.tool_definition import ToolDefinition
from sessions_app.environment.tool import ToolContext, ToolError


class ReadImage:
    """Needs an image reader; this Environment has none."""

    name = "read_image"

    def __init__(self, definition: ToolDefinition) -> None:
        pass

    def execute(self, args: dict[str, Any], ctx: ToolContext) -> AsyncIterator[str]:
        """Say that nothing can be done."""
        raise ToolError(
            "this environment has no partner for read_image: images cannot be read here"
        )
