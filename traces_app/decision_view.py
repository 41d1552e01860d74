"""An approval decision in words: who decided, how, after how long, and why."""

from __future__ import annotations

from dataclasses import dataclass

from traces_app.figures import duration
from traces_app.omnimessage import payloads as p
from traces_app.stored_event import StoredEvent

_HOW = {
    "button": "with the button",
    "key": "with a key",
    "form": "with the form",
    "batch": "in a batch",
    "api": "through the API",
    "cli": "in the terminal",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionView:
    """`title` goes on with `person`, when one is known."""

    seq: int
    decision: str  # allow or deny
    title: str
    person: str
    how: str
    timestamp: str
    mode: str
    reason: str


def view_decision(event: StoredEvent) -> DecisionView:
    """Return the decision in words."""
    payload = event.message.payload
    assert isinstance(payload, p.ApprovalDecision)
    title, person = _who(payload)
    return DecisionView(
        seq=event.seq,
        decision=payload.decision,
        title=title,
        person=person,
        how=_how(payload),
        timestamp=event.message.timestamp,
        mode=payload.mode or "",
        reason=payload.reason or "",
    )


def _who(payload: p.ApprovalDecision) -> tuple[str, str]:
    done = "Allowed" if payload.decision == "allow" else "Denied"
    match payload.source:
        case "user":
            return f"{done} by", payload.decided_by or "a person"
        case "mode":
            return f"{done} by mode {payload.mode or 'unknown'}", ""
        case "rule":
            return f"{done} by rule {payload.rule or ''}".rstrip(), ""
        case "policy":
            return f"{done}: nobody could be asked", ""
        case "expiry":
            return "Denied: nobody decided in time", ""
        case "interrupt" if payload.decided_by:
            return "Cancelled by", payload.decided_by
        case "interrupt":
            return "Cancelled: the task was stopped", ""
        case "restart":
            return "Dropped: the server restarted while the call waited", ""
        case "stream":
            return "Dropped: the model's answer broke off", ""


def _how(payload: p.ApprovalDecision) -> str:
    parts = []
    if payload.source == "user" and payload.via in _HOW:
        parts.append(_HOW[payload.via])
    if payload.waited_ms:
        parts.append(f"after {duration(payload.waited_ms)}")
    elif payload.source in ("mode", "rule"):
        parts.append("at once")
    return ", ".join(parts)
