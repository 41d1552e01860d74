"""The picture of a session as a page shows it: from the database alone, synchronous."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from sessions_app.models import (
    ApprovalRequest,
    CommandSession,
    QueuedMessage,
    Session,
)
from sessions_app.runtime.feed import pending_requests, stored_bindings
from sessions_app.runtime.items import is_text_item, kind_of
from sessions_app.runtime.output_log import read_chunks, stored_ends
from traces_app import reader
from traces_app.reader import StoredEvent

SHOWN = 64 * 1024  # characters of a streaming item a page begins with


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemState:
    """A text that is still streaming: its durable part, from `start` on."""

    item: str
    kind: str  # "text" or "thinking"
    start: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """One consistent picture; the socket goes on from `seq` and the items' ends."""

    session: Session
    events: list[StoredEvent]
    seq: int
    pending: list[ApprovalRequest]
    items: list[ItemState] = field(default_factory=list)
    bindings: dict[str, tuple[str, int]] = field(default_factory=dict)
    processes: list[dict[str, Any]] = field(default_factory=list)
    queued: list[QueuedMessage] = field(default_factory=list)


def snapshot(session_id: str, *, after: int = 0, limit: int | None = None) -> Snapshot:
    """Read the session, its events and what streams, in this order.

    Events come first: an item that is complete by then is simply not listed, one
    that completes in between is replaced by the socket's first events. Of large
    images only the beginning is read.
    """
    session = Session.objects.select_related("project", "agent", "trace").get(
        pk=session_id
    )
    events = []
    for event in reader.iter_events(session.trace_id, after=after, is_light=True):
        events.append(event)
        if limit is not None and len(events) >= limit:
            break
    seq = events[-1].seq if events else after
    return Snapshot(
        session=session,
        events=events,
        seq=seq,
        pending=pending_requests(session_id),
        items=_streaming(session_id),
        bindings=stored_bindings(session_id),
        processes=process_list(session_id),
        queued=list(QueuedMessage.objects.filter(session_id=session_id)),
    )


def _streaming(session_id: str) -> list[ItemState]:
    states = []
    for item, end in stored_ends(session_id).items():
        if not is_text_item(item):
            continue
        text = ""
        while len(text) < end:
            start, part = read_chunks(session_id, item, len(text))
            if not part or start != len(text):
                break
            text += part
        states.append(ItemState(item=item, kind=kind_of(item), start=0, text=text))
    return states


def item_text(session_id: str, item: str, start: int, stop: int) -> str:
    """Return the stored text of an item between two offsets, as far as it is kept."""
    parts = []
    at = start
    while at < stop:
        begin, part = read_chunks(session_id, item, at)
        if not part or begin >= stop:
            break
        parts.append(part[: stop - begin])
        at = begin + len(part)
    return "".join(parts)


def process_list(session_id: str) -> list[dict[str, Any]]:
    """Return the command sessions that outlived their call, newest last."""
    rows = CommandSession.objects.filter(session_id=session_id).exclude(
        state="exited", is_background=False
    )
    return [
        {
            "process_id": row.process_id,
            "pid": row.pid,
            "cmd": row.cmd,
            "cwd": row.cwd,
            "started_at": row.started_at,
            "running": row.state == "running",
            "state": row.state,
            "exit_code": row.exit_code,
            "signal": row.signal or None,
            "tool_call_id": row.tool_call_id,
        }
        for row in rows
    ]
