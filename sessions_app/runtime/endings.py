"""Stopping, archiving and deleting a session: what it began ends with it."""

from __future__ import annotations

import asyncio
import logging
import shutil
from typing import Any

from asgiref.sync import sync_to_async
from django.conf import settings
from django.db.models import Q
from django.utils import timezone

from sessions_app.models import (
    ApprovalRequest,
    AttachedImage,
    OutputChunk,
    Session,
    SessionStatus,
)
from sessions_app.runtime import decisions, family, recovery, supervisor
from sessions_app.runtime.reach import (
    find_session,
    live_session,
    notify,
    username,
)
from sessions_app.runtime.refusal import Refusal, conflict

logger = logging.getLogger(__name__)

DELETE_WAIT_S = 5.0


async def interrupt(session_id: str, *, user: Any = None) -> None:
    """Stop what runs or waits, in subagents too; on an idle session nothing happens."""
    await find_session(session_id)
    for child_id in await sync_to_async(_active_children)(session_id):
        await _interrupt_one(child_id, user)
    live = live_session(session_id)
    if live and live.environment:
        live.environment.stop_subagents()  # one may be about to begin its task
    await _interrupt_one(session_id, user)


async def _interrupt_one(session_id: str, user: Any) -> None:
    owner, name = supervisor.current(), username(user)
    if (live := owner.live.get(session_id)) and live.interrupt(name):
        return
    async with owner.starting[session_id]:  # a task may be about to begin
        if (live := owner.live.get(session_id)) and live.interrupt(name):
            return
        if not await sync_to_async(_has_open_turn)(session_id):
            return
        try:
            live = await owner.open(session_id)
        except Refusal:
            # Its folder or model is gone: what waits is settled without a loop.
            await sync_to_async(_settle_rows)(session_id, name)
            owner.hub.notify(session_id)
            return
        if live.desk:
            live.desk.stopped_by = name
        await owner.run(session_id, aborted=True)


def _settle_rows(session_id: str, name: str | None) -> None:
    """Deny what waits and close its calls, on record, as a restart would."""
    decisions.close_pending(session_id, name)
    recovery.recover_session(Session.objects.get(pk=session_id))


def _has_open_turn(session_id: str) -> bool:
    """Return whether there is a turn to stop although no task runs it here."""
    session = Session.objects.get(pk=session_id)
    if session.status == SessionStatus.WAITING:
        # A subagent's call may be all that waits: it is stopped there.
        own = ApprovalRequest.objects.filter(session=session, decision=None)
        return own.exists()
    return session.status == SessionStatus.RUNNING


def _active_children(session_id: str) -> list[str]:
    active = family.children_of(session_id).exclude(status=SessionStatus.IDLE)
    return list(active.values_list("pk", flat=True))


async def archive(session_id: str, flag: bool, *, user: Any = None) -> None:
    """Put the session away, or take it back; a running one is refused."""
    owner = supervisor.current()
    async with owner.starting[session_id]:
        session = await find_session(session_id)
        if flag and session.status != "idle":
            raise conflict("busy", "A task of this session runs: stop it first.")
        if flag and await sync_to_async(_active_children)(session_id):
            raise conflict("busy", "A subagent of this session runs: stop it first.")
        rows = Session.objects.filter(Q(pk=session_id) | Q(parent_id=session_id))
        await rows.aupdate(is_archived=flag)
        if flag:
            await owner.drop(session_id)
    notify(session)


async def delete_session(session_id: str, *, user: Any = None) -> None:
    """Take the session away from people, its subagents too; the record stays."""
    session = await find_session(session_id)
    await interrupt(session_id, user=user)
    children = await sync_to_async(
        lambda: [child.pk for child in family.children_of(session_id)]
    )()
    for key in (*children, session_id):
        await _until_free(key)
    for key in (session_id, *children):
        await _take_away(key, user)
    notify(session)


async def _take_away(session_id: str, user: Any) -> None:
    owner = supervisor.current()
    async with owner.starting[session_id]:
        await owner.drop(session_id)
        await sync_to_async(decisions.close_pending)(session_id, username(user))
        await sync_to_async(_erase)(await find_session(session_id))


async def _until_free(session_id: str) -> None:
    try:
        async with asyncio.timeout(DELETE_WAIT_S):
            if live := live_session(session_id):
                await live.until_free()
    except TimeoutError:
        logger.warning("%s is deleted while its task still ends", session_id)


def _erase(session: Session) -> None:
    recovery.recover_session(session)
    OutputChunk.objects.filter(session=session).delete()
    AttachedImage.objects.filter(session=session).delete()
    artifacts = settings.DATA_DIR / "artifacts" / session.pk
    shutil.rmtree(artifacts, ignore_errors=True)
    Session.objects.filter(pk=session.pk).update(deleted_at=timezone.now())
