"""The files that hold full outputs: found by session, handed out only unchanged."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator
from pathlib import Path

from django.conf import settings

from sessions_app import runtime
from sessions_app.models import Artifact, Session
from traces_app.omnimessage import payloads as p

CHUNK = 256 * 1024


def artifact_of(session: Session, seq: int) -> Path | None:
    """Return the file of an output, if it is kept and still what was recorded."""
    events = runtime.trace_events(session, after=seq - 1, limit=1)
    if not events or events[0].seq != seq:
        return None
    payload = events[0].message.payload
    if not isinstance(payload, p.ToolCallOutput):
        return None
    recorded = payload.details.get("artifact")
    if not isinstance(recorded, dict):
        return None
    digest = str(recorded.get("sha256", ""))
    rows = Artifact.objects.filter(session=session, sha256=digest)
    row = rows.first()
    path = Path(row.path if row else str(recorded.get("path", "")))
    return path if _is_ours(path, session) and _digest(path) == digest else None


async def chunks_of(path: Path) -> AsyncIterator[bytes]:
    """Yield the file piece by piece, so that a large one is never in memory."""
    with await asyncio.to_thread(path.open, "rb") as file:
        while chunk := await asyncio.to_thread(file.read, CHUNK):
            yield chunk


def _is_ours(path: Path, session: Session) -> bool:
    """Return whether the file lies where this session's outputs are kept.

    The record may be an imported one: a path in it is not to be trusted.
    """
    folder = (Path(settings.DATA_DIR) / "artifacts" / session.pk).resolve()
    resolved = path.resolve()
    return resolved.is_file() and resolved.is_relative_to(folder)


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
