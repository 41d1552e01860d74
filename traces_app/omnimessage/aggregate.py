"""Folds streaming pieces into complete messages."""

from __future__ import annotations

from dataclasses import dataclass, field

from traces_app.omnimessage import payloads as p
from traces_app.omnimessage.message import (
    OmniMessage,
    assistant_text,
    thinking,
    tool_call,
    tool_call_output,
)


@dataclass(slots=True)
class _Open:
    texts: list[str] = field(default_factory=list)
    images: list[str] = field(default_factory=list)
    name: str = ""


class Aggregator:
    """Collects `start`/`delta`/`stop` pieces of one stream.

    `feed` returns the complete message when a `stop` closes one, else None; `flush`
    closes what is still open, in the order it was opened.
    """

    def __init__(self) -> None:
        self._open: dict[tuple[str, str], _Open] = {}

    def feed(self, message: OmniMessage) -> OmniMessage | None:
        """Take one piece; messages that are no pieces are ignored."""
        piece = message.payload
        if not isinstance(piece, p.Partial):
            return None
        key = (piece.KIND, getattr(piece, "tool_call_id", ""))
        part = self._open.setdefault(key, _Open())
        match piece:
            case p.PartialText(text=text) | p.PartialThinking(thinking=text):
                part.texts.append(text)
            case p.PartialToolCall(arguments=text, name=name):
                part.texts.append(text)
                part.name = part.name or name
            case p.PartialToolCallOutput(output=text, images=images):
                part.texts.append(text)
                part.images.extend(images)
        if piece.event_type != "stop":
            return None
        reason = getattr(piece, "stop_reason", None) or p.StopReason.COMPLETED
        return self._close(key, reason)

    def flush(self, reason: p.StopReason = p.StopReason.ABORTED) -> list[OmniMessage]:
        """Close every open message; outputs among them end with `reason`."""
        return [self._close(key, reason) for key in list(self._open)]

    def _close(self, key: tuple[str, str], reason: p.StopReason) -> OmniMessage:
        part = self._open.pop(key)
        text = "".join(part.texts)
        kind, tool_call_id = key
        if kind == p.PartialText.KIND:
            return assistant_text(text)
        if kind == p.PartialThinking.KIND:
            return thinking(text)
        if kind == p.PartialToolCall.KIND:
            return tool_call(part.name, text, tool_call_id)
        return tool_call_output(tool_call_id, text, reason, images=tuple(part.images))
