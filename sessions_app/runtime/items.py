"""Names of streaming text items, the same for who writes, who reads and the Trace.

`text-<request_seq>-<n>` and `think-<request_seq>-<n>`: the request's first event and
how many texts and thoughts of it were complete before. Counted from the Trace, so
that a page opened later finds the same names.
"""

from __future__ import annotations

from traces_app.omnimessage import OmniMessage
from traces_app.omnimessage.payloads import (
    PartialText,
    PartialThinking,
    RequestBegin,
    Text,
    Thinking,
)


class ItemNames:
    """Follows messages in record order and names the item each belongs to."""

    def __init__(self, request_seq: int = 0, count: int = 0) -> None:
        self._request_seq = request_seq
        self._count = count

    def of_piece(self, message: OmniMessage) -> tuple[str, str] | None:
        """Return (item, kind) of a streaming piece of text or thinking."""
        if isinstance(message.payload, PartialText):
            return f"text-{self._request_seq}-{self._count}", "text"
        if isinstance(message.payload, PartialThinking):
            return f"think-{self._request_seq}-{self._count}", "thinking"
        return None

    def of_complete(self, message: OmniMessage, seq: int) -> str | None:
        """Return the item a complete message supersedes; follow the count."""
        payload = message.payload
        if isinstance(payload, RequestBegin):
            self._request_seq, self._count = seq, 0
            return None
        if not isinstance(payload, (Text, Thinking)) or payload.role != "assistant":
            return None
        kind = "text" if isinstance(payload, Text) else "think"
        name = f"{kind}-{self._request_seq}-{self._count}"
        self._count += 1
        return name


def is_text_item(item: str) -> bool:
    """Return whether the item is streaming model text or thinking."""
    return item.startswith(("text-", "think-"))


def kind_of(item: str) -> str:
    """Return "text", "thinking" or "output" from the item's name."""
    if item.startswith("text-"):
        return "text"
    return "thinking" if item.startswith("think-") else "output"
