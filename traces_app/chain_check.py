"""Walks a stored Trace once: digests, links, columns, and the fold of completeness."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from django.db import connections

from traces_app import body, chain
from traces_app.columns import columns_of, starts_segment
from traces_app.completeness import Completeness
from traces_app.findings import Finding
from traces_app.reader import parts_of

_BATCH = 2000  # rows in memory
_PAGE = (
    "SELECT e.seq, e.segment, e.timestamp, e.type, e.kind, e.tool_call_id, e.tool, "
    "e.decision, e.status, e.size, e.salt, e.body_sha256, e.hash, "
    "b.text, b.has_parts, b.erased_at, e.id "
    "FROM traces_app_traceevent e "
    "LEFT JOIN traces_app_eventbody b ON b.event_id = e.id "
    "WHERE e.trace_id = %s AND e.seq > %s ORDER BY e.seq LIMIT 2000"
)


@dataclass(slots=True)
class _Row:
    seq: int
    segment: int
    timestamp: str
    type: str
    kind: str
    tool_call_id: str | None
    tool: str | None
    decision: str | None
    status: str | None
    size: int
    salt: bytes
    body_sha256: bytes
    hash: bytes
    text: str | None
    has_parts: bool
    erased_at: Any
    id: int


class ChainCheck:
    """One walk; afterwards `finding`, `completeness` and the counters tell."""

    def __init__(
        self,
        trace_id: int,
        session_id: str,
        *,
        heads: Mapping[int, str],
        erasures: Collection[int] = (),
    ) -> None:
        """`heads`: signed seq -> head hash; `erasures`: seqs the journal knows."""
        self._trace_id = trace_id
        self._session_id = session_id
        self._heads = heads
        self._erasures = erasures
        self.finding: Finding | None = None
        self.completeness = Completeness()
        self.events = 0
        self.erased = 0
        self.head = chain.START
        self._seq = 0
        self._segment = 1
        self._tools: dict[str, str] = {}
        self._vouched = 0  # last seq whose signed head agreed

    def run(self, progress: Callable[[int], None] | None = None) -> None:
        """Walk to the end; `progress` hears the number of events now and then."""
        for row in self._rows():
            self._check(row)
            self.events += 1
            if progress is not None and self.events % _BATCH == 0:
                progress(self.events)
        last_signed = max(self._heads, default=0)
        if last_signed > self._seq:
            self._found(
                self._seq + 1,
                f"events from #{self._seq + 1} on are missing: a checkpoint says "
                f"there were {last_signed}",
            )

    def _rows(self) -> Iterator[_Row]:
        after = 0
        while True:
            with connections["default"].cursor() as cursor:
                cursor.execute(_PAGE, [self._trace_id, after])
                page = [_Row(*row) for row in cursor.fetchall()]
            parts = parts_of([row.id for row in page if row.has_parts])
            for row in page:
                if row.has_parts and row.text is not None:
                    row.text = body.join(row.text, parts.get(row.id, ()))
                yield row
            if len(page) < _BATCH:
                return
            after = page[-1].seq

    def _check(self, row: _Row) -> None:
        envelope = self._body(row)
        header = chain.header(
            self._session_id, row.seq, row.timestamp, row.type, bytes(row.body_sha256)
        )
        if row.seq != self._seq + 1:
            self._found(self._seq + 1, f"event #{self._seq + 1} is missing")
        elif chain.link(self.head, header) != bytes(row.hash):
            self._found(row.seq, self._broken_link(row.seq))
        self._check_head(row)
        if envelope is not None:
            self._check_columns(row, envelope)
        self.completeness.feed(row.seq, row.kind, envelope or {})
        self.head = bytes(row.hash)
        self._seq = row.seq
        self._segment += starts_segment(row.kind, row.status)

    def _broken_link(self, seq: int) -> str:
        if seq == 1:
            return f"event #1 is not the first event of {self._session_id}"
        return f"event #{seq} does not follow from #{seq - 1}: one of them was changed"

    def _body(self, row: _Row) -> dict[str, Any] | None:
        """Return the parsed body, None when it is missing or no JSON."""
        if row.text is None:
            self._found(row.seq, f"the body of event #{row.seq} is missing")
            return None
        if row.erased_at is not None:
            self.erased += 1
            if row.seq not in self._erasures:
                self._found(
                    row.seq,
                    f"event #{row.seq} claims to be erased, but the journal knows of "
                    "no erasure",
                )
        else:
            encoded = row.text.encode()
            digest = chain.body_digest(bytes(row.salt), encoded)
            if digest != bytes(row.body_sha256) or len(encoded) != row.size:
                self._found(row.seq, f"the body of event #{row.seq} was changed")
        try:
            envelope = json.loads(row.text)
        except (ValueError, RecursionError):
            return None
        return envelope if isinstance(envelope, dict) else None

    def _check_head(self, row: _Row) -> None:
        signed = self._heads.get(row.seq)
        if signed is None:
            return
        if signed == bytes(row.hash).hex():
            self._vouched = row.seq
            return
        self._found(
            self._vouched + 1,
            f"events between #{self._vouched + 1} and #{row.seq} were changed and "
            f"hashed anew: the checkpoint at #{row.seq} signed another head",
        )

    def _check_columns(self, row: _Row, envelope: Mapping[str, Any]) -> None:
        """The filter columns are in no hash, so each must repeat the body."""
        try:
            said = columns_of(envelope)
        except (KeyError, TypeError, AttributeError):
            self._found(row.seq, f"the body of event #{row.seq} is no OmniMessage")
            return
        tool = said.tool
        if said.tool_call_id is not None:
            if tool is not None:
                self._tools[said.tool_call_id] = tool
            tool = self._tools.get(said.tool_call_id)
        for name, stored, meant in (
            ("segment", row.segment, self._segment),
            ("timestamp", row.timestamp, said.timestamp),
            ("type", row.type, said.type),
            ("kind", row.kind, said.kind if row.erased_at is None else row.kind),
            ("tool_call_id", row.tool_call_id, said.tool_call_id),
            ("tool", row.tool, tool),
            ("decision", row.decision, said.decision),
            ("status", row.status, said.status),
        ):
            if stored != meant:
                self._found(
                    row.seq, f"the column {name} of event #{row.seq} was changed"
                )

    def _found(self, seq: int, sentence: str) -> None:
        if self.finding is None:
            self.finding = Finding(seq=seq, sentence=sentence)
