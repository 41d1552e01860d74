"""What the filter columns of an event say, taken from its body alone.

The same function serves the insert and the check, so a column that was changed
afterwards differs from what the body says.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from traces_app.omnimessage.codec import storable

LENGTH = 200  # of a column; longer values are cut here, never in the body


@dataclass(frozen=True, slots=True)
class Columns:
    """`tool` is known here only for the call itself; others ask by `tool_call_id`."""

    timestamp: str
    type: str
    kind: str
    tool_call_id: str | None
    tool: str | None
    decision: str | None
    status: str | None


def columns_of(envelope: Mapping[str, Any]) -> Columns:
    """Return the columns of an envelope that the codec has accepted."""
    payload = envelope["payload"]
    type_ = envelope["type"]
    kind = "session_meta" if type_ == "session_meta" else payload["type"]
    return Columns(
        envelope["timestamp"],
        type_,
        kind,
        _text(payload.get("tool_call_id")),
        _text(payload.get("name")) if kind == "tool_call" else None,
        _text(payload.get("decision")) if kind == "approval_decision" else None,
        _text(payload.get("stop_reason") or payload.get("status")),
    )


def starts_segment(kind: str, status: str | None) -> bool:
    """Return whether what follows such an event is a new model context."""
    return kind == "compaction_end" and status == "completed"


def _text(value: Any) -> str | None:
    return storable(value[:LENGTH]) if isinstance(value, str) else None
