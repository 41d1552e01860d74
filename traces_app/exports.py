"""Exports of a Trace, streamed: JSONL, CSV and the proof bundle (OTLP: `otlp`).

Each is a generator of bytes that holds one page of events in memory. The head is
read first and the export ends there, so a Trace that grows meanwhile gives a whole.
"""

from __future__ import annotations

import csv
import io
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from traces_app import chain, offline_verify, reader, witness
from traces_app.erasure import ERASE
from traces_app.integrity import as_line, statement_of_line
from traces_app.models import Checkpoint, JournalEntry, Trace, TraceEvent
from traces_app.signing import known_keys
from traces_app.stored_event import StoredEvent

CSV_COLUMNS = (
    "seq",
    "segment",
    "timestamp",
    "type",
    "kind",
    "tool_call_id",
    "tool",
    "decision",
    "status",
    "size",
    "hash",
    "body",
)
# A spreadsheet takes a cell that begins so for a formula.
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")
_CHUNK = 64 * 1024  # bytes of one piece of the stream
_README = """\
trace.jsonl  the record, one message per line
proof.jsonl  what proves it: digests, hash chain, signed checkpoints, witness lines
verify.py    checks both; run it with:  python verify.py
"""


def jsonl(trace: Trace, *, after: int = 0) -> Iterator[bytes]:
    """Stream the envelopes, nothing else; `after` resumes behind a seq."""
    head = reader.head_seq(trace.pk)
    return _chunks(_lines(trace, after=after, head=head))


def as_csv(trace: Trace, *, after: int = 0) -> Iterator[bytes]:
    """Stream a table for spreadsheets; cells cannot become formulas."""
    head = reader.head_seq(trace.pk)

    def lines() -> Iterator[bytes]:
        yield _csv_row(CSV_COLUMNS)
        for event in _events(trace, after=after, head=head):
            yield _csv_row(_cells(event))

    return _chunks(lines())


def bundle(trace: Trace) -> Iterator[bytes]:
    """Stream a zip with the record, its proof and the program that checks both."""
    head = reader.head_seq(trace.pk)
    sink = _Sink()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as file:
        with file.open("trace.jsonl", "w", force_zip64=True) as member:
            for chunk in _chunks(_lines(trace, after=0, head=head)):
                member.write(chunk)
                yield sink.take()
        with file.open("proof.jsonl", "w", force_zip64=True) as member:
            for chunk in _chunks(_proof(trace, head)):
                member.write(chunk)
                yield sink.take()
        file.writestr("verify.py", Path(offline_verify.__file__).read_bytes())
        file.writestr("README.txt", _README)
    yield sink.take()


def _events(trace: Trace, *, after: int, head: int) -> Iterator[StoredEvent]:
    for event in reader.iter_events(trace.pk, after):
        if event.seq > head:
            return
        yield event


def _lines(trace: Trace, *, after: int, head: int) -> Iterator[bytes]:
    for event in _events(trace, after=after, head=head):
        is_bare = event.seq == head and not trace.ends_in_newline
        yield event.json.encode() + (b"" if is_bare else b"\n")


def _chunks(lines: Iterator[bytes]) -> Iterator[bytes]:
    """Join lines to pieces worth sending."""
    pending: list[bytes] = []
    size = 0
    for line in lines:
        pending.append(line)
        size += len(line)
        if size >= _CHUNK:
            yield b"".join(pending)
            pending, size = [], 0
    if pending:
        yield b"".join(pending)


def _cells(event: StoredEvent) -> list[Any]:
    return [
        event.seq,
        event.segment,
        event.timestamp,
        event.type,
        event.kind,
        event.tool_call_id,
        event.tool,
        event.decision,
        event.status,
        event.size,
        event.hash,
        event.json,
    ]


def _csv_row(cells: Any) -> bytes:
    buffer = io.StringIO()
    csv.writer(buffer).writerow([_inert(cell) for cell in cells])
    return buffer.getvalue().encode()


def _inert(cell: Any) -> Any:
    if isinstance(cell, str) and cell.startswith(_FORMULA_STARTS):
        return f"'{cell}"
    return cell


def _proof(trace: Trace, head: int) -> Iterator[bytes]:
    """The proof: about the whole, then a line per event, then what was signed."""
    checkpoints = list(
        Checkpoint.objects.filter(trace=trace, seq__lte=head).order_by("number")
    )
    last = TraceEvent.objects.filter(trace=trace, seq=head).first()
    about = {
        "proof": 1,
        "trace": trace.session_id,
        "count": head,
        "head_hash": (bytes(last.hash) if last else chain.START).hex(),
        "is_imported": trace.is_imported,
        "signed": sorted({row.seq for row in checkpoints}),
        "public_keys": {key_id: key.hex() for key_id, key in known_keys().items()},
    }
    yield _line(about)
    yield from _links(trace, head)
    yield from _erasures(trace)
    for row in checkpoints:
        yield b'{"checkpoint":%s}\n' % as_line(row.text, bytes(row.signature)).encode()
    for _, line in witness.lines():
        said = statement_of_line(line) if line is not None else None
        if said and said[0].trace == trace.session_id and said[0].seq <= head:
            yield _line({"witness": line})


def _erasures(trace: Trace) -> Iterator[bytes]:
    """The journal's word for each erasure: its entry, and the checkpoint over it."""
    entries = JournalEntry.objects.filter(kind=ERASE, session_id=trace.session_id)
    for entry in entries.order_by("seq"):
        before = JournalEntry.objects.filter(seq=entry.seq - 1).first()
        signed = Checkpoint.objects.filter(trace__isnull=True, seq=entry.seq).first()
        if signed is None:
            continue
        line = as_line(signed.text, bytes(signed.signature))
        erasure = {
            "text": entry.text,
            "salt": bytes(entry.salt).hex(),
            "previous": (bytes(before.hash) if before else chain.START).hex(),
            "checkpoint": chain.parse(line),
        }
        yield _line({"erasure": erasure})


def _links(trace: Trace, head: int) -> Iterator[bytes]:
    after = 0
    while after < head:
        page = TraceEvent.objects.filter(trace=trace, seq__gt=after, seq__lte=head)
        rows = list(
            page.select_related("body").defer("body__text").order_by("seq")[:1000]
        )
        for row in rows:
            digest = bytes(row.body_sha256)
            link: dict[str, Any] = {
                "seq": row.seq,
                "salt": bytes(row.salt).hex(),
                "header": chain.header(
                    trace.session_id, row.seq, row.timestamp, row.type, digest
                ),
                "hash": bytes(row.hash).hex(),
            }
            if row.body.erased_at is not None:
                link["erased"] = {
                    "by": row.body.erased_by,
                    "at": row.body.erased_at.isoformat(),
                    "reason": row.body.erased_because,
                }
            yield _line(link)
        if not rows:
            return
        after = rows[-1].seq


def _line(value: Any) -> bytes:
    return chain.canonical(value).encode() + b"\n"


class _Sink(io.RawIOBase):
    """A file that cannot seek, emptied by the stream after each write."""

    def __init__(self) -> None:
        super().__init__()
        self._pending: list[bytes] = []

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._pending.append(bytes(data))
        return len(data)

    def take(self) -> bytes:
        """Return what was written since the last call."""
        taken = b"".join(self._pending)
        self._pending.clear()
        return taken
