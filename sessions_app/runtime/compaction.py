"""A compaction that a person asks for: like a task, without a message."""

from __future__ import annotations

from typing import Any

from asgiref.sync import sync_to_async
from django.db import transaction

from sessions_app.models import Session
from sessions_app.runtime import assembly, supervisor
from sessions_app.runtime.refusal import Refusal, conflict, not_found


async def compact(session_id: str, *, user: Any = None) -> None:
    """Begin to summarise the conversation into a fresh context.

    Raises `Refusal` 409: `busy` while a task runs or waits, `nothing_to_compact`
    before the first answer.
    """
    owner = supervisor.current()
    async with owner.starting[session_id]:
        live = await owner.open(session_id)
        if live.loop is not None and not live.loop.history.conversation:
            raise conflict(
                "nothing_to_compact",
                "There is no conversation to summarise yet.",
            )
        await sync_to_async(_begin)(session_id, is_busy=live.is_busy)
        await live.until_free()
        live = await owner.open(session_id)
        await assembly.record_config(live)
        if live.is_busy:
            raise _busy()
        live.run(compacts=True)
    owner.hub.notify(session_id)


def _begin(session_id: str, *, is_busy: bool) -> None:
    """Let the row say that something runs; a task that comes now is queued or 409."""
    with transaction.atomic():
        rows = Session.objects.select_for_update().filter(pk=session_id)
        session = rows.filter(deleted_at=None).first()
        if session is None:
            raise not_found(f"The session {session_id}")
        if session.is_archived:
            raise conflict("archived", "The session is archived: unarchive it first.")
        # A row may read running although nothing runs, and idle a moment too early.
        is_running = session.status == "running" and is_busy
        if is_running or session.status == "waiting":
            raise _busy()
        rows.update(status="running")


def _busy() -> Refusal:
    return conflict(
        "busy",
        "A task of this session is running or waits for a decision. Stop it first, "
        "or wait until it has ended.",
    )
