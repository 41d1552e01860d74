"""What can be changed about a request that a provider does not accept as it is."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from sessions_app.engine.history import History
from sessions_app.engine.messages import has_images
from sessions_app.engine.retry import describe
from sessions_app.llm.client import CredentialsError, InvalidRequestError, LLMError
from traces_app.omnimessage import OmniMessage, user_text
from traces_app.omnimessage import payloads as p

CLIP_CHARS = 2000  # of an output or text, when even the summary request is too long
# Providers have no common code for these; their words are all there is. Some answer
# an image for a text model with 500, so any last error counts.
_IMAGES = re.compile(r"image|vision|multimodal|media.?type", re.IGNORECASE)
_LENGTH = re.compile(
    r"context.{0,20}(length|window|size|limit)|too (long|large|many tokens)"
    r"|exceed|maximum.{0,40}tokens",
    re.IGNORECASE,
)


def images_note(history: History, error: LLMError) -> OmniMessage | None:
    """Return the note that takes refused images out of the history.

    None when there are none, or the error is about something else.
    """
    words = describe(error)
    if isinstance(error, CredentialsError) or not _IMAGES.search(words):
        return None
    if not any(map(has_images, history.messages)):
        return None
    text = f"[images were removed, the provider refused them: {words}]"
    return user_text(text, synthetic="images_removed")


def is_too_long(error: LLMError) -> bool:
    """Return whether the provider says that the request does not fit."""
    is_invalid = isinstance(error, InvalidRequestError)
    return is_invalid and _LENGTH.search(describe(error)) is not None


def clipped(messages: Iterable[OmniMessage]) -> list[OmniMessage]:
    """Return the messages with long texts and outputs cut and images left out."""
    return [_clipped(m) for m in messages if not _is_image(m)]


def _is_image(message: OmniMessage) -> bool:
    return isinstance(message.payload, p.ImageUrl | p.InlineData)


def _clipped(message: OmniMessage) -> OmniMessage:
    match message.payload:
        case p.ToolCallOutput(output=text) as output:
            return replace(
                message, payload=replace(output, output=_cut(text), images=())
            )
        case p.Text(text=text) as payload if len(text) > CLIP_CHARS:
            return replace(message, payload=replace(payload, text=_cut(text)))
        case _:
            return message


def _cut(text: str) -> str:
    if len(text) <= CLIP_CHARS:
        return text
    left = len(text) - CLIP_CHARS
    return f"{text[:CLIP_CHARS]}\n[{left} characters are left out here]"
