"""The instance journal: who read, exported, verified or signed in, chained as well.

It is kept apart from the Traces, so that reading a record never writes into it. The
same person doing the same to the same session within an hour is one entry.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from django.db import IntegrityError, connections, transaction

from traces_app import chain
from traces_app.integrity import JOURNAL, write_journal_checkpoint
from traces_app.models import JournalEntry
from traces_app.omnimessage import now
from traces_app.omnimessage.codec import storable

_LOCK = (7381, 2)  # PostgreSQL advisory lock of the journal's chain


def record(
    kind: str,
    person: str,
    *,
    session_id: str = "",
    project: str = "",
    details: Mapping[str, Any] | None = None,
    every_time: bool = False,
) -> JournalEntry | None:
    """Note that a person did something; None when this hour's entry says so already.

    `every_time` is for what must not be coalesced, such as an erasure.
    """
    moment = now()
    person, session_id = storable(person)[:150], storable(session_id)[:200]
    occasion = None if every_time else _occasion(kind, person, session_id, moment)
    if occasion and JournalEntry.objects.filter(occasion=occasion).exists():
        return None
    text = chain.canonical(
        {
            "timestamp": moment,
            "kind": kind,
            "person": person,
            "session_id": session_id,
            "project": project,
            "details": dict(details or {}),
        }
    )
    try:
        with transaction.atomic():
            entry = _insert(moment, storable(text), occasion)
            write_journal_checkpoint()
    except IntegrityError:
        if occasion and JournalEntry.objects.filter(occasion=occasion).exists():
            return None  # another process was a moment faster
        raise
    return entry


def _insert(moment: str, text: str, occasion: str | None) -> JournalEntry:
    _take_turn()
    last = JournalEntry.objects.order_by("-seq").values_list("seq", "hash").first()
    seq, previous = (last[0] + 1, bytes(last[1])) if last else (1, chain.START)
    salt = chain.new_salt()
    digest = chain.body_digest(salt, text.encode())
    columns = columns_of(text)
    header = chain.header(JOURNAL, seq, moment, columns["kind"], digest)
    return JournalEntry.objects.create(
        seq=seq,
        timestamp=moment,
        **columns,
        occasion=occasion,
        text=text,
        salt=salt,
        body_sha256=digest,
        hash=chain.link(previous, header),
    )


def columns_of(text: str) -> dict[str, str]:
    """Return what the filter columns of an entry must say."""
    entry = chain.parse(text)
    return {name: entry[name] for name in ("kind", "person", "session_id", "project")}


def _occasion(kind: str, person: str, session_id: str, moment: str) -> str:
    hour = moment[:13]  # 2026-01-31T09
    named = chain.canonical([kind, person, session_id, hour])
    return hashlib.sha256(named.encode()).hexdigest()


def _take_turn() -> None:
    connection = connections["default"]
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s, %s)", _LOCK)


def details_of(entry: JournalEntry) -> dict[str, Any]:
    """Return what an entry says beyond its columns."""
    return dict(chain.parse(entry.text)["details"])
