"""Small questions about messages that several parts of the engine ask."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from traces_app.omnimessage import OmniMessage
from traces_app.omnimessage import payloads as p


def call_id(message: OmniMessage) -> str:
    """Return the tool_call_id a call or an output carries."""
    payload = message.payload
    assert isinstance(payload, (p.ToolCall, p.ToolCallOutput))
    return payload.tool_call_id


def has_images(message: OmniMessage) -> bool:
    """Return whether the message is an image of the user or an output with some."""
    match message.payload:
        case p.ImageUrl(role="user") | p.InlineData(role="user"):
            return True
        case p.ToolCallOutput(images=images):
            return bool(images)
        case _:
            return False


def without_images(messages: Iterable[OmniMessage]) -> list[OmniMessage]:
    """Return the messages without images; an output stays, its images go."""
    kept = []
    for message in messages:
        if isinstance(message.payload, p.ToolCallOutput):
            kept.append(replace(message, payload=replace(message.payload, images=())))
        elif not has_images(message):
            kept.append(message)
    return kept
