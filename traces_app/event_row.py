"""One line of the viewer per event: what it is, in a few words."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from traces_app.arguments import read_arguments, spell
from traces_app.figures import count, duration, number
from traces_app.omnimessage.codec import CodecError
from traces_app.pictures import pictures_of
from traces_app.stored_event import StoredEvent

LONGEST = 240  # characters of a row's text

_ICONS = {
    "session_meta": "flag",
    "request_begin": "right",
    "request_end": "out",
    "text": "sessions",
    "thinking": "think",
    "tool_call": "terminal",
    "tool_call_output": "terminal",
    "tool_started": "run",
    "approval_request": "beak",
    "approval_decision": "check",
    "abort": "stop",
    "subagent": "agent",
    "mode_changed": "settings",
    "config_in_force": "settings",
    "recovered": "retry",
    "process_evicted": "terminal",
    "image_url": "image",
    "inline_data": "image",
    "token_usage": "note",
    "tool_list_ready": "settings",
    "damaged": "warning",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class EventRow:
    """A row; `decision` colours it, `took` and `by` stand at its end."""

    seq: int
    segment: int
    timestamp: str
    agent: str
    icon: str
    kind: str
    text: str
    took: str = ""
    by: str = ""
    decision: str = ""
    is_deep: bool = True  # belongs to a request
    is_erased: bool = False


def rows_of(events: Iterable[StoredEvent]) -> list[EventRow]:
    """Return the rows of a page of events."""
    return [row_of(event) for event in events]


def row_of(event: StoredEvent) -> EventRow:
    """Return the row of one event; a body that cannot be read says so."""
    try:
        message = event.message
    except CodecError as error:
        return EventRow(
            seq=event.seq,
            segment=event.segment,
            timestamp=event.timestamp,
            agent="",
            icon="warning",
            kind=event.kind,
            text=f"cannot be read: {error}",
        )
    payload = message.payload
    tell = _TEXTS.get(event.kind)
    decision = getattr(payload, "decision", "") or ""
    return EventRow(
        seq=event.seq,
        segment=event.segment,
        timestamp=message.timestamp,
        agent=" › ".join(["root", *message.origin]) if message.origin else "root",
        icon="denied" if decision == "deny" else _ICONS.get(event.kind, "note"),
        kind=event.kind,
        text=_one_line(tell(payload) if tell else ""),
        took=_took(payload),
        by=getattr(payload, "decided_by", "") or _source(payload),
        decision=decision,
        is_deep=event.kind not in ("session_meta", "request_begin", "request_end"),
        is_erased=event.erasure is not None,
    )


def _one_line(text: str) -> str:
    line = " ".join(text[: LONGEST * 2].split())
    shown = "".join(span.text for span in spell(line))
    return shown if len(shown) <= LONGEST else shown[: LONGEST - 1] + "…"


def _took(payload: Any) -> str:
    if waited := getattr(payload, "waited_ms", 0):
        return duration(waited)
    took = getattr(payload, "details", {}).get("duration_ms")
    return duration(took) if isinstance(took, int | float) else ""


def _source(payload: Any) -> str:
    source = getattr(payload, "source", None)
    return "" if source is None or source == "user" else str(source)


def _meta(payload: Any) -> str:
    return f"{payload.provider}/{payload.model_id} in {payload.workspace}"


def _request_end(payload: Any) -> str:
    parts = [str(payload.status), payload.error_message or ""]
    if payload.retry_in_ms is not None:
        parts.append(f"next attempt in {duration(payload.retry_in_ms)}")
    return ", ".join(filter(None, parts))


def _text(payload: Any) -> str:
    who = payload.synthetic or payload.role
    return f"{who}: {payload.text}"


def _call(payload: Any) -> str:
    summary = read_arguments(payload.name, payload.arguments).summary
    return f"{payload.name} {summary}"


def _output(payload: Any) -> str:
    details = payload.details
    ending = str(payload.stop_reason)
    if details.get("exit_code") is not None:
        ending = f"exit {details['exit_code']}"
    size = number(len(payload.output))
    shown = len(payload.images)
    images = f", {count(shown, 'image', 'images')}" if shown else ""
    return f"{ending}, {size} characters{images}: {payload.output}"


def _image(payload: Any) -> str:
    (picture,) = pictures_of(payload)
    return picture.label or picture.words


def _decision(payload: Any) -> str:
    reason = f", “{payload.reason}”" if payload.reason else ""
    return f"{payload.decision} by {payload.source}, {payload.via}{reason}"


def _usage(payload: Any) -> str:
    by = f" of {payload.model}" if payload.model else ""
    return f"{number(payload.request.total)} tokens{by}"


_TEXTS: dict[str, Callable[[Any], str]] = {
    "session_meta": _meta,
    "request_begin": lambda p: f"attempt {p.attempt}" if p.attempt > 1 else "",
    "request_end": _request_end,
    "text": _text,
    "thinking": lambda p: str(p.thinking),
    "tool_call": _call,
    "tool_call_output": _output,
    "approval_request": lambda p: str(p.asked_because),
    "approval_decision": _decision,
    "mode_changed": lambda p: f"{p.from_mode} → {p.to_mode}, by {p.by or 'nobody'}",
    "config_in_force": lambda p: ", ".join(f"{k} {v}" for k, v in p.version.items()),
    "token_usage": _usage,
    "abort": lambda p: str(p.reason),
    "recovered": lambda p: str(p.what),
    "subagent": lambda p: str(p.session_id),
    "process_evicted": lambda p: str(p.process_id),
    "damaged": lambda p: f"line {p.line}: {p.reason}",
    "image_url": _image,
    "inline_data": _image,
    "tool_list_ready": lambda p: f"{len(p.tools)} tools",
}
