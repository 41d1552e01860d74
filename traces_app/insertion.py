"""Inserts events: the next seq, the hash, and one batch of SQL per transaction.

Flow: (1) a message becomes a `Draft`, outside any lock. (2) `Batch.add` reads the
head under the lock of its Trace, links each draft to it and answers with stored
events. (3) `Batch.flush` writes the collected rows.

The lock is SQLite's one writer, and on PostgreSQL the row of the Trace, so that two
processes appending to one Trace take turns instead of forking its chain. The unique
key (trace, seq) stands behind that: `HeadConflict` says to start over.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db import IntegrityError, connections

from traces_app import body, chain, database_errors
from traces_app.columns import Columns, columns_of, starts_segment
from traces_app.omnimessage import OmniMessage
from traces_app.omnimessage.codec import dumps
from traces_app.stored_event import StoredEvent

_INSERT_EVENT = (
    "INSERT INTO traces_app_traceevent "
    "(trace_id, seq, segment, timestamp, type, kind, tool_call_id, tool, decision, "
    "status, size, salt, body_sha256, hash) "
    "VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)"
)
_INSERT_BODY = (
    "INSERT INTO traces_app_eventbody "
    "(event_id, text, has_parts, erased_by, erased_because) VALUES "
    "((SELECT id FROM traces_app_traceevent WHERE trace_id = %s AND seq = %s), "
    "%s, %s, '', '')"
)
_INSERT_BLOB = (
    "INSERT INTO traces_app_blob (sha256, text) SELECT %s, %s "
    "WHERE NOT EXISTS (SELECT 1 FROM traces_app_blob WHERE sha256 = %s) "
    "ON CONFLICT DO NOTHING"
)
_INSERT_PART = (
    'INSERT INTO traces_app_bodypart (body_id, "offset", blob_id) VALUES '
    "((SELECT id FROM traces_app_traceevent WHERE trace_id = %s AND seq = %s), "
    "%s, %s)"
)
_TRACE = "SELECT session_id FROM traces_app_trace WHERE id = %s"
_LOCK = {"postgresql": " FOR NO KEY UPDATE"}
_HEAD = (
    "SELECT seq, hash, segment, kind, status FROM traces_app_traceevent "
    "WHERE trace_id = %s ORDER BY seq DESC LIMIT 1"
)
_TOOL = (
    "SELECT tool FROM traces_app_traceevent WHERE trace_id = %s "
    "AND tool_call_id = %s AND kind = 'tool_call' ORDER BY seq DESC LIMIT 1"
)


class HeadConflict(Exception):
    """Another writer took the same seq; nothing of the transaction may stay."""


@dataclass(frozen=True, slots=True)
class Draft:
    """An event that has no place in a chain yet."""

    text: str
    encoded: bytes
    columns: Columns


def draft(message: OmniMessage) -> Draft:
    """Return the draft of a message; raises ValueError on what is never recorded."""
    if message.is_partial:
        raise ValueError(f"a {message.kind} is streaming and is never recorded")
    if message.origin:
        raise ValueError("a message of a child session belongs into the child's Trace")
    envelope = message.to_dict()
    text = dumps(envelope)
    return Draft(text, text.encode(), columns_of(envelope))


@dataclass(slots=True)
class Head:
    """The end of a Trace, moved forward by each event that is added."""

    trace_id: int
    session_id: str
    seq: int = 0
    hash: bytes = chain.START
    segment: int = 1  # of the next event
    tools: dict[str, str] = field(default_factory=dict)  # tool_call_id -> tool


class Batch:
    """The events of one transaction; call it inside `transaction.atomic`."""

    def __init__(self, using: str = "default") -> None:
        self._connection = connections[using]
        self._heads: dict[int, Head] = {}
        self._events: list[tuple[Any, ...]] = []
        self._bodies: list[tuple[Any, ...]] = []
        self._parts: list[tuple[int, int, body.Part]] = []

    def head(self, trace_id: int) -> Head:
        """Return the head, locked until the transaction ends."""
        head = self._heads.get(trace_id)
        if head is None:
            head = self._heads[trace_id] = self._read_head(trace_id)
        return head

    def forget(self, trace_id: int) -> None:
        """Read the head again at the next use: a savepoint was rolled back."""
        self._heads.pop(trace_id, None)
        self._events.clear()
        self._bodies.clear()
        self._parts.clear()

    def add(self, trace_id: int, drafts: Iterable[Draft]) -> list[StoredEvent]:
        """Link the drafts to the head; they are written by the next `flush`."""
        head = self.head(trace_id)
        return [self._place(head, draft) for draft in drafts]

    def flush(self) -> None:
        """Write what was added; raises `HeadConflict` when a seq was taken."""
        if not self._events:
            return
        events, bodies, parts = self._events, self._bodies, self._parts
        self._events, self._bodies, self._parts = [], [], []
        with self._connection.cursor() as cursor:
            try:
                cursor.executemany(_INSERT_EVENT, events)
            except IntegrityError as error:
                if database_errors.is_taken(error):
                    raise HeadConflict(str(error)) from error
                raise
            cursor.executemany(_INSERT_BODY, bodies)
            for trace_id, seq, part in parts:
                cursor.execute(_INSERT_BLOB, [part.sha256, part.text, part.sha256])
                cursor.execute(_INSERT_PART, (trace_id, seq, part.offset, part.sha256))

    def _place(self, head: Head, draft: Draft) -> StoredEvent:
        columns = draft.columns
        seq = head.seq + 1
        salt = chain.new_salt()
        digest = chain.body_digest(salt, draft.encoded)
        header = chain.header(
            head.session_id, seq, columns.timestamp, columns.type, digest
        )
        hash_ = chain.link(head.hash, header)
        tool = self._tool(head, columns)
        size = len(draft.encoded)
        text, parts = body.split(draft.text, size)
        place = (head.trace_id, seq, head.segment, columns.timestamp, columns.type)
        found = (columns.kind, columns.tool_call_id, tool, columns.decision)
        self._events.append((*place, *found, columns.status, size, salt, digest, hash_))
        self._bodies.append((head.trace_id, seq, text, bool(parts)))
        self._parts += [(head.trace_id, seq, part) for part in parts]
        stored = StoredEvent(
            seq=seq,
            segment=head.segment,
            hash=hash_.hex(),
            kind=columns.kind,
            json=draft.text,
            size=size,
            timestamp=columns.timestamp,
            type=columns.type,
            tool_call_id=columns.tool_call_id,
            tool=tool,
            decision=columns.decision,
            status=columns.status,
        )
        head.seq, head.hash = seq, hash_
        if starts_segment(columns.kind, columns.status):
            head.segment += 1
        return stored

    def _tool(self, head: Head, columns: Columns) -> str | None:
        call = columns.tool_call_id
        if call is None:
            return None
        if columns.tool is not None:
            head.tools[call] = columns.tool
            return columns.tool
        if call not in head.tools:
            row = self._one(_TOOL, [head.trace_id, call])
            if row is None:
                return None
            head.tools[call] = row[0]
        return head.tools[call]

    def _read_head(self, trace_id: int) -> Head:
        lock = _LOCK.get(self._connection.vendor, "")
        trace = self._one(_TRACE + lock, [trace_id])
        if trace is None:
            raise LookupError(f"there is no Trace with the id {trace_id}")
        last = self._one(_HEAD, [trace_id])
        if last is None:
            return Head(trace_id, trace[0])
        seq, hash_, segment, kind, status = last
        if starts_segment(kind, status):
            segment += 1
        return Head(trace_id, trace[0], seq, bytes(hash_), segment)

    def _one(self, query: str, values: Sequence[Any]) -> tuple[Any, ...] | None:
        with self._connection.cursor() as cursor:
            cursor.execute(query, values)
            return cursor.fetchone()  # type: ignore[no-any-return]
