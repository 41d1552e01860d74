"""Removes the body of an event on purpose; the chain holds its digest and stays whole.

In the body's place comes a stand-in of the same shape, so that pages, exports and
the agent's history still find a call where a call was. Who erased it, when and why
stands in the row and in the instance journal; a row that claims to be erased without
the journal knowing is tampering.
"""

from __future__ import annotations

import dataclasses
import json
from typing import Any

from django.db import connections
from django.utils import timezone

from traces_app import journal, reader
from traces_app.append_only import purge_allowed
from traces_app.models import Blob, BodyPart, EventBody, TraceEvent
from traces_app.omnimessage import OmniMessage
from traces_app.omnimessage import payloads as p

ERASE = "erase"  # the kind of the journal entry
# Fields that hold what people and models said; all others are structure.
_CONTENT = {
    "text",
    "thinking",
    "output",
    "reason",
    "error_message",
    "system_prompt",
    "asked_because",
    "what",
    "rule",
}


def erase_body(event: TraceEvent, *, by: str, reason: str) -> None:
    """Erase the body of an event; asks nobody, the caller has checked the right.

    An erased body stays as it is. Raises ValueError without a person or a reason.
    """
    if not by or not reason.strip():
        raise ValueError("An erasure needs a person and a reason.")
    _shred_freed_pages()
    with purge_allowed():
        body = EventBody.objects.select_for_update().get(pk=event.pk)
        if body.erased_at is not None:
            return
        stored = reader.event_at(event.trace_id, event.seq)
        assert stored is not None
        moment = timezone.now()
        notice = f"[erased by {by} on {moment:%Y-%m-%d}: {reason}]"
        EventBody.objects.filter(pk=event.pk).update(
            text=stand_in(stored.message, notice).to_json(),
            has_parts=False,
            erased_at=moment,
            erased_by=by[:150],
            erased_because=reason[:500],
        )
        _remove_parts(event.pk)
        journal.record(
            ERASE,
            by,
            session_id=event.trace.session_id,
            project=event.trace.project,
            details={
                "seq": event.seq,
                "reason": reason,
                "body_sha256": bytes(event.body_sha256).hex(),
            },
            every_time=True,
        )
    _shred_log()


def stand_in(message: OmniMessage, notice: str) -> OmniMessage:
    """Return a message of the same shape that says `notice` where content was."""
    payload = message.payload
    if isinstance(payload, (p.ImageUrl, p.InlineData, p.InlineThinking)):
        text = p.Text(role=payload.role, text=notice, synthetic="notice")
        return dataclasses.replace(message, payload=text, extra=p.NO_EXTRA)
    changes: dict[str, Any] = {"extra": p.NO_EXTRA}
    for field in dataclasses.fields(payload):
        value = getattr(payload, field.name)
        if field.name in _CONTENT and value is not None:
            changes[field.name] = notice
        elif field.name == "arguments":
            changes[field.name] = json.dumps({"erased": notice}, ensure_ascii=False)
        elif field.name in ("images", "tools"):
            changes[field.name] = ()
        elif field.name == "details":
            changes[field.name] = p.NO_EXTRA
        elif field.name == "fidelity":
            changes[field.name] = None
    return dataclasses.replace(
        message, payload=dataclasses.replace(payload, **changes), extra=p.NO_EXTRA
    )


def _remove_parts(body_id: int) -> None:
    """Remove the body's parts, and the blobs that no other body holds."""
    parts = BodyPart.objects.filter(body_id=body_id)
    digests = list(parts.values_list("blob_id", flat=True))
    parts.delete()
    Blob.objects.filter(sha256__in=digests, uses__isnull=True).delete()


def _shred_freed_pages() -> None:
    """Have SQLite overwrite what it frees, on this connection from now on."""
    connection = connections["default"]
    if connection.vendor == "sqlite":
        with connection.cursor() as cursor:
            cursor.execute("PRAGMA secure_delete = ON")


def _shred_log() -> None:
    """Empty SQLite's write-ahead log, in which the old page still stands."""
    connection = connections["default"]
    if connection.vendor == "sqlite" and not connection.in_atomic_block:
        with connection.cursor() as cursor:
            cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")
