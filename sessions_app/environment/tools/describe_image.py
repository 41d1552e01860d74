"""describe_image: have a vision model tell what an image shows."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

from sessions_app.config.tool_definition import ToolDefinition
from sessions_app.environment.arguments import optional_text
from sessions_app.environment.describe import MODEL_USE, Describe, ModelUse
from sessions_app.environment.image_source import (
    ImageSource,
    promptly,
    source_argument,
)
from sessions_app.environment.tool import ToolContext, ToolError

PROMPT = (
    "Describe this image in detail for somebody who cannot see it: what it shows and "
    "how it is arranged, every text in it word for word, numbers, colours, and "
    "whatever looks unusual or wrong."
)
NO_MODEL = (
    "no vision model is configured, so the image was not looked at: set vision_model in "
    "the project's document to one of its models that has vision (PROVIDER/ID)"
)


class DescribeImage:
    """Gives a model that cannot see the words of one that can."""

    name = "describe_image"

    def __init__(
        self,
        definition: ToolDefinition,
        images: ImageSource,
        describe: Describe | None,
    ) -> None:
        self._images = images
        self._describe = describe

    async def execute(
        self, args: dict[str, Any], ctx: ToolContext
    ) -> AsyncIterator[str]:
        """Load the image and stream the answer about it."""
        source, prompt = source_argument(args), optional_text(args, "prompt")
        if self._describe is None:
            raise ToolError(NO_MODEL)
        image = await self._images.load(source, ctx.signal)
        ctx.details["image"] = image.facts
        has_words = False
        answer = self._describe(image.url, prompt.strip() or PROMPT)
        async with aclosing(answer) as parts:
            while (part := await promptly(anext(parts, None), ctx.signal)) is not None:
                if isinstance(part, ModelUse):
                    ctx.details[MODEL_USE] = part.to_details()
                    continue
                has_words = has_words or bool(part.strip())
                yield part
        if not has_words:
            raise ToolError("the vision model answered without any text")
