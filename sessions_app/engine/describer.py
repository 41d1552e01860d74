"""Asks a model that sees about one image: what stands behind describe_image."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing

from sessions_app.engine.retry import describe
from sessions_app.environment.describe import ModelUse
from sessions_app.environment.tool import ToolError
from sessions_app.llm.client import LLMClient, LLMError, ModelRequest
from traces_app.omnimessage import image_url, user_text
from traces_app.omnimessage import payloads as p


class Describer:
    """A `Describe` of the environment: one request per image, never repeated.

    The words come as they are streamed; the usage comes last, for whoever counts it.
    """

    def __init__(self, make_client: Callable[[], LLMClient]) -> None:
        self._make_client = make_client

    async def __call__(
        self, image: str, prompt: str
    ) -> AsyncGenerator[str | ModelUse, None]:
        """Yield the answer; raises `ToolError` with the provider's words."""
        llm = self._make_client()
        model = f"{llm.provider}/{llm.model_id}"
        messages = [image_url(image), user_text(prompt)]
        request = ModelRequest(system_prompt="", messages=messages)
        is_streamed = False  # the text whose complete message comes next
        try:
            async with aclosing(llm.stream(request)) as items:
                async for item in items:
                    if isinstance(item, p.Usage):
                        yield ModelUse(model=model, usage=item)
                        continue
                    match item.payload:
                        case p.PartialText(text=text) if text:
                            is_streamed = True
                            yield text
                        case p.Text(text=text):
                            if not is_streamed:
                                yield text
                            is_streamed = False
        except LLMError as error:
            words = describe(error)
            raise ToolError(f"{model} did not describe the image: {words}") from error
        finally:
            await llm.aclose()
