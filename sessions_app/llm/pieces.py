"""Streams one part of an answer: start, deltas, stop, then the complete message."""

from __future__ import annotations

from typing import Any, Literal

from traces_app.omnimessage import OmniMessage, assistant_text, thinking, tool_call
from traces_app.omnimessage import payloads as p


class TextPart:
    """A text or a thought that arrives in deltas; an empty one leaves no trace."""

    def __init__(self, kind: Literal["text", "thinking"]) -> None:
        self.kind = kind
        self._texts: list[str] = []

    def delta(self, text: str) -> list[OmniMessage]:
        """Return the pieces for more text, `start` before the first."""
        if not text:
            return []
        is_first = not self._texts
        self._texts.append(text)
        pieces = [self._piece("start", "")] if is_first else []
        return [*pieces, self._piece("delta", text)]

    def close(self, *, fidelity: Any = None) -> list[OmniMessage]:
        """Return `stop` and the complete message.

        A thought without words still counts when it carries a signature.
        """
        text = "".join(self._texts)
        if self.kind == "text":
            complete = assistant_text(text, fidelity=fidelity)
        else:
            complete = thinking(text, fidelity=fidelity)
        if text:
            return [self._piece("stop", ""), complete]
        return [complete] if fidelity is not None else []

    def _piece(self, event_type: p.EventType, text: str) -> OmniMessage:
        if self.kind == "text":
            return OmniMessage(
                payload=p.PartialText(
                    role="assistant", event_type=event_type, text=text
                )
            )
        return OmniMessage(
            payload=p.PartialThinking(
                role="assistant", event_type=event_type, thinking=text
            )
        )


class CallPart:
    """A tool call whose arguments arrive in deltas."""

    def __init__(self, *, tool_call_id: str, name: str) -> None:
        self.tool_call_id = tool_call_id
        self.name = name
        self._texts: list[str] = []

    @property
    def arguments(self) -> str:
        """Return the argument text so far."""
        return "".join(self._texts)

    def start(self) -> OmniMessage:
        """Return the piece that announces the call."""
        return self._piece("start", "")

    def delta(self, text: str) -> list[OmniMessage]:
        """Return the piece for more arguments."""
        if not text:
            return []
        self._texts.append(text)
        return [self._piece("delta", text)]

    def close(self, *, fidelity: Any = None) -> list[OmniMessage]:
        """Return `stop` and the complete call."""
        complete = tool_call(
            self.name, self.arguments, self.tool_call_id, fidelity=fidelity
        )
        return [self._piece("stop", ""), complete]

    def _piece(self, event_type: p.EventType, text: str) -> OmniMessage:
        return OmniMessage(
            payload=p.PartialToolCall(
                role="assistant",
                event_type=event_type,
                tool_call_id=self.tool_call_id,
                name=self.name,
                arguments=text,
            )
        )
