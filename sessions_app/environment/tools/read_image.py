"""read_image: look at an image."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from sessions_app.config.tool_definition import ToolDefinition
from sessions_app.environment.image_source import ImageSource, source_argument
from sessions_app.environment.tool import ToolContext, ToolResult


class ReadImage:
    """Gives the model an image of the workspace or the web."""

    name = "read_image"

    def __init__(self, definition: ToolDefinition, images: ImageSource) -> None:
        self._images = images

    async def execute(
        self, args: dict[str, Any], ctx: ToolContext
    ) -> AsyncIterator[str | ToolResult]:
        """Load the image and attach it."""
        image = await self._images.load(source_argument(args), ctx.signal)
        ctx.details["image"] = image.facts
        yield image.summary
        yield ToolResult(images=[image.url])
