"""Checkpoints: signed statements about a head, chained over the whole instance.

A hash chain alone proves nothing about its end: who cuts the last events leaves a
chain that is whole. A checkpoint says how long a Trace was, the next checkpoint of
any Trace says that this one was there, and the witness file says it all once more.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from django.db import connections, transaction

from traces_app import chain, witness
from traces_app.models import Checkpoint, JournalEntry, TraceEvent
from traces_app.omnimessage import now
from traces_app.signing import signing_key

JOURNAL = "journal"  # the name under which the instance journal is checkpointed
_LOCK = (7381, 1)  # PostgreSQL advisory lock of the checkpoint chain
_NOTHING_BEFORE = bytes(32).hex()


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """What a checkpoint says, read from its signed text."""

    number: int
    trace: str  # session id, or the journal
    seq: int
    count: int
    head_hash: str
    time: str
    key_id: str
    previous: str  # hash of the checkpoint before it

    @classmethod
    def from_text(cls, text: str) -> Statement:
        """Read the signed text; raises ValueError when it is no statement."""
        value = json.loads(text)
        if not isinstance(value, dict) or value.get("v") != chain.VERSION:
            raise ValueError("not the text of a checkpoint")
        fields: dict[str, Any] = {n: value.get(n) for n in cls.__dataclass_fields__}
        for name, field in fields.items():
            wanted = int if name in ("number", "seq", "count") else str
            if type(field) is not wanted:
                raise ValueError(f"a checkpoint without a right {name}")
        return cls(**fields)


def write_checkpoint(trace_id: int, *, using: str = "default") -> Checkpoint:
    """Sign the head of a Trace, inside the caller's transaction.

    The witness line is written after the commit. When the head is covered already,
    the checkpoint that covers it is returned. Raises LookupError on an empty Trace.
    """
    head = (
        TraceEvent.objects.using(using)
        .filter(trace_id=trace_id)
        .order_by("-seq")
        .values_list("seq", "hash", "trace__session_id")
        .first()
    )
    if head is None:
        raise LookupError(f"the Trace {trace_id} has no event to sign")
    return _sign(head[2], head[0], bytes(head[1]), trace_id=trace_id, using=using)


def write_journal_checkpoint(*, using: str = "default") -> Checkpoint:
    """Sign the head of the instance journal, inside the caller's transaction."""
    entry = JournalEntry.objects.using(using).order_by("-seq").first()
    if entry is None:
        raise LookupError("the journal has no entry to sign")
    return _sign(JOURNAL, entry.seq, bytes(entry.hash), trace_id=None, using=using)


def _sign(
    name: str, seq: int, head: bytes, *, trace_id: int | None, using: str
) -> Checkpoint:
    with transaction.atomic(using=using):
        _take_turn(using)
        rows = Checkpoint.objects.using(using)
        own = (
            rows.filter(trace__isnull=True)
            if trace_id is None
            else rows.filter(trace_id=trace_id)
        )
        covering = own.order_by("-seq", "-id").first()
        if covering is not None and covering.seq == seq:
            return covering
        last = rows.order_by("-number").first()
        number = last.number + 1 if last else 1
        moment = now()
        key = signing_key()
        text = chain.canonical(
            {
                "v": chain.VERSION,
                "number": number,
                "trace": name,
                "seq": seq,
                "count": seq,
                "head_hash": head.hex(),
                "time": moment,
                "key_id": key.key_id,
                "previous": bytes(last.hash).hex() if last else _NOTHING_BEFORE,
            }
        )
        checkpoint = rows.create(
            number=number,
            trace_id=trace_id,
            seq=seq,
            text=text,
            hash=chain.text_digest(text),
            signature=key.sign(text),
            created_at=datetime.fromisoformat(moment),
        )
        transaction.on_commit(
            partial(witness.append, number, partial(_lines, using)), using=using
        )
    return checkpoint


def as_line(text: str, signature: bytes) -> str:
    """Return a checkpoint as it stands in the witness file and in a bundle.

    The signed text is the canonical JSON of the line without its signature.
    """
    return chain.canonical({**json.loads(text), "signature": signature.hex()})


def statement_of_line(line: Mapping[str, Any]) -> tuple[Statement, str, bytes] | None:
    """Return statement, signed text and signature of such a line, None for others."""
    try:
        signature = bytes.fromhex(line["signature"])
        text = chain.canonical({k: v for k, v in line.items() if k != "signature"})
        return Statement.from_text(text), text, signature
    except (KeyError, TypeError, ValueError):
        return None


def _lines(using: str, after: int, to: int) -> list[str]:
    rows = Checkpoint.objects.using(using).filter(number__gt=after, number__lte=to)
    return [as_line(row.text, bytes(row.signature)) for row in rows.order_by("number")]


def _take_turn(using: str) -> None:
    """Keep two processes from giving out the same number."""
    connection = connections[using]
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s, %s)", _LOCK)
