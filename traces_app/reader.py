"""Reads events by their seq: pages, filters, find. No OFFSET, no COUNT.

Every query walks the key (trace, seq) or an index that ends in seq, so any place of
a long Trace is as near as its beginning.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from django.db.models import QuerySet
from django.db.models.functions import Substr

from traces_app import body, find
from traces_app.columns import LENGTH
from traces_app.models import Blob, BodyPart, Trace, TraceEvent
from traces_app.stored_event import Erasure, StoredEvent

__all__ = [
    "Erasure",
    "StoredEvent",
    "call_events",
    "event_at",
    "events",
    "head_seq",
    "iter_events",
    "last_event",
    "parts_of",
    "seq_at",
    "trace_for",
]

_COLUMNS = (
    "seq",
    "segment",
    "kind",
    "size",
    "timestamp",
    "type",
    "tool_call_id",
    "tool",
    "decision",
    "status",
)
_FIELDS = (
    "id",
    "hash",
    "body__text",
    "body__has_parts",
    "body__erased_at",
    "body__erased_by",
    "body__erased_because",
    *_COLUMNS,
)
_FIND_BATCH = 500  # candidates looked at between two looks at the limit
LIGHT = 64 * 1024  # characters of an image's text: enough to tell its type and size


def trace_for(session_id: str) -> Trace | None:
    """Return the Trace of a session, None when there is none."""
    return Trace.objects.filter(session_id=session_id).first()


def events(
    trace_id: int,
    *,
    after: int = 0,
    limit: int = 200,
    kinds: Collection[str] = (),
    tool: str | None = None,
    decision: str | None = None,
    q: str | None = None,
    is_light: bool = False,
) -> list[StoredEvent]:
    """Return up to `limit` events after a seq that pass every filter, ascending.

    `tool` finds all events of the tool's calls; `q` finds what a reader sees: the
    text of any value, not the names of fields. `is_light` leaves out all but the
    beginning of large images, for pages that do not show their bytes.
    """
    rows = _filtered(trace_id, tool=tool, decision=decision)
    if not q:
        return _page(rows, kinds, after=after, limit=limit, is_light=is_light)
    candidates = find.candidates(rows, q)
    found: list[StoredEvent] = []
    while len(found) < limit:
        page = _page(candidates, kinds, after=after, limit=_FIND_BATCH)
        found += (event for event in page if find.is_visible(q, event.json))
        if len(page) < _FIND_BATCH:
            break
        after = page[-1].seq
    return found[:limit]


def event_at(trace_id: int, seq: int) -> StoredEvent | None:
    """Return the event a permalink names, whatever filters are on."""
    stored = _stored(TraceEvent.objects.filter(trace_id=trace_id, seq=seq))
    return stored[0] if stored else None


def call_events(
    trace_id: int, tool_call_id: str, *, is_light: bool = False
) -> list[StoredEvent]:
    """Return all events of one call: request, decision, start, output."""
    rows = TraceEvent.objects.filter(
        trace_id=trace_id, tool_call_id=tool_call_id[:LENGTH]
    )
    return _stored(rows.order_by("seq"), is_light=is_light)


def head_seq(trace_id: int) -> int:
    """Return the seq of the last event, 0 for an empty Trace."""
    rows = TraceEvent.objects.filter(trace_id=trace_id).order_by("-seq")
    return rows.values_list("seq", flat=True).first() or 0


def last_event(
    trace_id: int, kind: str, *, upto: int | None = None
) -> StoredEvent | None:
    """Return the newest event of a kind, at or before seq `upto` when it is given."""
    rows = TraceEvent.objects.filter(trace_id=trace_id, kind=kind)
    if upto is not None:
        rows = rows.filter(seq__lte=upto)
    newest = rows.order_by("-seq").values_list("seq", flat=True).first()
    return event_at(trace_id, newest) if newest else None


def seq_at(trace_id: int, timestamp: str) -> int:
    """Return the seq of the last event of a moment or before it, 0 for none."""
    rows = TraceEvent.objects.filter(trace_id=trace_id, timestamp__lte=timestamp)
    return rows.order_by("-seq").values_list("seq", flat=True).first() or 0


def iter_events(
    trace_id: int, after: int = 0, batch: int = 1000, *, is_light: bool = False
) -> Iterator[StoredEvent]:
    """Yield every event after a seq, in memory for one batch only."""
    while True:
        page = events(trace_id, after=after, limit=batch, is_light=is_light)
        yield from page
        if len(page) < batch:
            return
        after = page[-1].seq


def _filtered(
    trace_id: int, *, tool: str | None, decision: str | None
) -> QuerySet[TraceEvent]:
    rows = TraceEvent.objects.filter(trace_id=trace_id)
    if tool is not None:
        rows = rows.filter(tool=tool[:LENGTH])
    if decision is not None:
        rows = rows.filter(decision=decision[:LENGTH])
    return rows


def _page(
    rows: QuerySet[TraceEvent],
    kinds: Collection[str],
    *,
    after: int,
    limit: int,
    is_light: bool = False,
) -> list[StoredEvent]:
    """Return a page; several kinds are merged from a page of each.

    One query for all of them would sort every match of a long Trace first.
    """
    rows = rows.filter(seq__gt=after).order_by("seq")
    if len(kinds) <= 1:
        rows = rows.filter(kind__in=list(kinds)) if kinds else rows
        return _stored(rows[:limit], is_light=is_light)
    seqs: list[int] = []
    for kind in set(kinds):
        seqs += rows.filter(kind=kind).values_list("seq", flat=True)[:limit]
    return _stored(rows.filter(seq__in=sorted(seqs)[:limit]), is_light=is_light)


def _stored(rows: QuerySet[TraceEvent], *, is_light: bool = False) -> list[StoredEvent]:
    found: list[Any] = list(rows.values_list(*_FIELDS))
    texts = {row[0]: row[2] for row in found if row[3]}
    parts = _light_parts(texts) if is_light else parts_of(list(texts))
    return [_event(row, parts.get(row[0], ())) for row in found]


def parts_of(event_ids: Sequence[int]) -> dict[int, list[tuple[int, str]]]:
    """Return (offset, text) of the parts of each body, to be put in by `body.join`."""
    found: dict[int, list[tuple[int, str]]] = {}
    if event_ids:
        rows = BodyPart.objects.filter(body_id__in=event_ids).order_by("id")
        for body_id, offset, text in rows.values_list(
            "body_id", "offset", "blob__text"
        ):
            found.setdefault(body_id, []).append((offset, text))
    return found


def _light_parts(texts: Mapping[int, str]) -> dict[int, list[tuple[int, str]]]:
    """Return the parts of the bodies, of images only the beginning."""
    if not texts:
        return {}
    rows = BodyPart.objects.filter(body_id__in=texts).order_by("id")
    places = list(rows.values_list("body_id", "offset", "blob_id"))
    images = {
        (body_id, offset)
        for body_id, offset, _ in places
        if texts[body_id].endswith(";base64,", 0, offset)
    }
    whole = {blob for body_id, at, blob in places if (body_id, at) not in images}
    cut = {blob for body_id, at, blob in places if (body_id, at) in images}
    blobs = Blob.objects.annotate(head=Substr("text", 1, LIGHT))
    heads = dict(blobs.filter(sha256__in=cut).values_list("sha256", "head"))
    full = dict(blobs.filter(sha256__in=whole).values_list("sha256", "text"))
    found: dict[int, list[tuple[int, str]]] = {}
    for body_id, offset, blob in places:
        part = (heads if (body_id, offset) in images else full)[blob]
        found.setdefault(body_id, []).append((offset, part))
    return found


def _event(row: Sequence[Any], parts: Sequence[tuple[int, str]]) -> StoredEvent:
    _, hash_, text, _, erased_at, by, because, *columns = row
    erasure = None
    if erased_at is not None:
        erasure = Erasure(by=by, at=erased_at.isoformat(), reason=because)
    return StoredEvent(
        hash=bytes(hash_).hex(),
        json=body.join(text, parts),
        erasure=erasure,
        **dict(zip(_COLUMNS, columns, strict=True)),
    )
