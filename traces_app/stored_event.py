"""An event as the record holds it: its place in the chain and its exact text."""

from __future__ import annotations

from dataclasses import dataclass, field

from traces_app.omnimessage import OmniMessage


@dataclass(frozen=True, slots=True, kw_only=True)
class Erasure:
    """Who removed a body, when and why."""

    by: str
    at: str  # ISO 8601 UTC
    reason: str


@dataclass(slots=True, kw_only=True)
class StoredEvent:
    """One recorded event; `message` is parsed when it is first asked for."""

    seq: int
    segment: int
    hash: str  # hex
    kind: str
    json: str  # the exact text; of an erased body its stand-in
    size: int  # bytes of the body as it was recorded
    timestamp: str
    type: str  # of the envelope
    tool_call_id: str | None = None
    tool: str | None = None  # also of decisions and outputs of the tool's calls
    decision: str | None = None
    status: str | None = None  # stop reason of an output, status of an ended request
    erasure: Erasure | None = None
    _message: OmniMessage | None = field(default=None, repr=False, compare=False)

    @property
    def message(self) -> OmniMessage:
        """Return the parsed message."""
        if self._message is None:
            self._message = OmniMessage.from_json(self.json)
        return self._message
