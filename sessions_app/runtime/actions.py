"""What people and programs do to sessions: messages, decisions, modes, stops.

These belong to the server's event loop. Each writes rows first and wakes whoever acts
on them; what cannot be done raises `Refusal` and changes nothing.
"""

from __future__ import annotations

import asyncio
import logging
import shutil
from collections.abc import Sequence
from functools import partial
from typing import Any

from asgiref.sync import sync_to_async
from django.conf import settings
from django.utils import timezone

from sessions_app.models import (
    ApprovalRequest,
    CommandSession,
    OutputChunk,
    Project,
    Session,
)
from sessions_app.runtime import decisions, recovery, sessions, supervisor
from sessions_app.runtime.hub import Hub
from sessions_app.runtime.live_session import LiveSession
from sessions_app.runtime.refusal import Refusal, conflict, invalid, not_found
from sessions_app.runtime.sessions import Wish
from sessions_app.runtime.snapshot import process_list
from traces_app.omnimessage import OmniMessage, event
from traces_app.omnimessage.payloads import ModeChanged

logger = logging.getLogger(__name__)

DELETE_WAIT_S = 5.0


async def create_session(
    *, project: Project, user: Any, any_workspace: bool = False, **wish: Any
) -> Session:
    """Make a session; raises `Refusal` 422 naming the field that cannot be."""
    asked = Wish(any_workspace=any_workspace, **wish)
    session = await sync_to_async(sessions.create)(project, user, asked)
    _notify(session)
    return session


async def start_task(
    session_id: str,
    *,
    text: str,
    images: Sequence[str] = (),
    user: Any = None,
    queue: bool = False,
) -> bool:
    """Take a message, durably; True when it started a task, False when it waits."""
    owner = supervisor.current()
    async with owner.starting[session_id]:
        live = await owner.open(session_id)
        starts = await sync_to_async(sessions.enqueue)(
            session_id,
            text=text,
            images=list(images),
            user=user if user is not None and user.pk else None,
            queue=queue,
            is_busy=live.is_busy,
        )
        if starts:
            await live.until_free()
            await owner.run(session_id)
    owner.hub.notify(session_id)
    _notify(await _session(session_id))
    return starts


async def interrupt(session_id: str, *, user: Any = None) -> None:
    """Stop what runs or waits; on an idle session nothing happens."""
    owner, name = supervisor.current(), _name(user)
    await _session(session_id)
    if (live := owner.live.get(session_id)) and live.interrupt(name):
        return
    async with owner.starting[session_id]:  # a task may be about to begin
        if (live := owner.live.get(session_id)) and live.interrupt(name):
            return
        if (await _session(session_id)).status == "idle":
            return
        live = await owner.open(session_id)
        if live.desk:
            live.desk.stopped_by = name
        await owner.run(session_id, aborted=True)


async def decide(
    session_id: str,
    tool_call_id: str,
    *,
    decision: str,
    user: Any,
    via: str,
    reason: str = "",
    arguments_sha256: str | None = None,
    attempt: int | None = None,
) -> ApprovalRequest:
    """Store a person's decision and let the turn go on; see `decisions.decide`."""
    row = await sync_to_async(decisions.decide)(
        session_id,
        tool_call_id,
        decision=decision,
        username=_name(user),
        via=via,
        reason=reason,
        arguments_sha256=arguments_sha256,
        attempt=attempt,
    )
    await _wake(session_id)
    return row


async def set_mode(session_id: str, mode: str, *, user: Any = None) -> None:
    """Change the approval mode, on record, and re-decide what is pending."""
    decisions.check_mode(mode)
    session = await _session(session_id)
    if session.parent_id:
        raise conflict("follows_parent", "A subagent's mode follows its parent's.")
    if session.approval_mode == mode:
        return
    changed = ModeChanged(from_mode=session.approval_mode, to_mode=mode, by=_name(user))
    also = partial(decisions.mode_rows, session_id, mode, _name(user))
    await _append(session, event(changed), also=also)
    await _wake(session_id)


async def rename(session_id: str, title: str, *, user: Any = None) -> None:
    """Give the session another title."""
    session = await _session(session_id)
    if len(title) > 200:
        raise invalid("title", f"The title has {len(title)} characters; 200 fit.")
    await Session.objects.filter(pk=session_id).aupdate(title=title.strip())
    _notify(session)


async def archive(session_id: str, flag: bool, *, user: Any = None) -> None:
    """Put the session away, or take it back; a running one is refused."""
    owner = supervisor.current()
    async with owner.starting[session_id]:
        session = await _session(session_id)
        if flag and session.status != "idle":
            raise conflict("busy", "A task of this session runs: stop it first.")
        await Session.objects.filter(pk=session_id).aupdate(is_archived=flag)
        if flag:
            await owner.drop(session_id)
    _notify(session)


async def delete_session(session_id: str, *, user: Any = None) -> None:
    """Take the session away from people; its record stays."""
    session = await _session(session_id)
    owner = supervisor.current()
    live = owner.live.get(session_id)
    if session.status != "idle" or (live and live.is_busy):
        await interrupt(session_id, user=user)
        await _until_idle(session_id)
    async with owner.starting[session_id]:
        await owner.drop(session_id)
        await sync_to_async(decisions.close_pending)(session_id, _name(user))
        await sync_to_async(_erase)(await _session(session_id))
    _notify(session)


async def _until_idle(session_id: str) -> None:
    try:
        async with asyncio.timeout(DELETE_WAIT_S):
            while (live := _live(session_id)) and live.is_busy:
                await asyncio.sleep(0.05)
    except TimeoutError:
        logger.warning("%s is deleted while its task still ends", session_id)


def _erase(session: Session) -> None:
    recovery.recover_session(session)
    OutputChunk.objects.filter(session=session).delete()
    artifacts = settings.DATA_DIR / "artifacts" / session.pk
    shutil.rmtree(artifacts, ignore_errors=True)
    Session.objects.filter(pk=session.pk).update(deleted_at=timezone.now())


async def save_draft(session_id: str, text: str) -> None:
    """Keep what stands in the composer, for a reload or another device."""
    await Session.objects.filter(pk=session_id).aupdate(draft=text[: sessions.MAX_TEXT])


async def recall_queued(session_id: str, queued_id: int, *, user: Any = None) -> str:
    """Take a queued message back and return its text; 409 once delivered."""
    text = await sync_to_async(sessions.recall)(session_id, queued_id)
    _hub().notify(session_id)
    return text


async def retry_now(session_id: str, *, user: Any = None) -> None:
    """Skip the wait before the next attempt at a request."""
    live = _live(session_id)
    if live and live.loop:
        live.loop.retry_now()


async def processes(session_id: str) -> list[dict[str, Any]]:
    """Return the session's processes as `env.processes()` lists them."""
    live = _live(session_id)
    if live and live.environment:
        return live.environment.processes()
    rows = await sync_to_async(process_list)(session_id)
    return [row for row in rows if row["state"] != "evicted"]


async def kill_process(session_id: str, process_id: str, *, user: Any = None) -> None:
    """End a command session; 404 when it is not one of this session."""
    live = _live(session_id)
    if live and live.environment and await live.environment.kill_process(process_id):
        _hub().notify(session_id)
        return
    rows = CommandSession.objects.filter(session_id=session_id, process_id=process_id)
    if not await rows.aexists():
        raise not_found(f"The process {process_id}")


async def send_input(
    session_id: str, process_id: str, chars: str, *, user: Any = None
) -> None:
    """Type into a running command as a person does; the text is kept nowhere."""
    live = _live(session_id)
    delivered = 0
    if live and live.environment:
        delivered = await live.environment.send_input(process_id, chars)
    if delivered < len(chars):
        raise conflict(
            "not_delivered",
            f"The process {process_id} took {delivered} of {len(chars)} characters: "
            "it has ended, or it does not read its input.",
        )


async def _append(session: Session, *messages: OmniMessage, also: Any) -> None:
    """Record beside whatever runs, through the live session when it is here."""
    live = _live(session.pk)
    is_over = live is None or not live.is_busy  # no task's end will sign it
    if live:
        await live.append(*messages, also=also, checkpoint=is_over)
    else:
        writer = supervisor.current().writer
        await writer.append(session.trace_id, *messages, also=also, checkpoint=is_over)


async def _wake(session_id: str) -> None:
    """Let the owner see new rows; without one, take the session up."""
    owner = supervisor.current()
    owner.hub.notify(session_id)
    live = owner.live.get(session_id)
    if live and live.is_busy:
        return
    if await sync_to_async(supervisor.has_news)(session_id):
        try:
            await owner.go_on(session_id)
        except Refusal as refusal:
            # Another process runs it, and looks at the rows once a second.
            if refusal.code != "owned_elsewhere":
                raise


async def _session(session_id: str) -> Session:
    session = (
        await Session.objects.select_related("project")
        .filter(pk=session_id, deleted_at=None)
        .afirst()
    )
    if session is None:
        raise not_found(f"The session {session_id}")
    return session


def _live(session_id: str) -> LiveSession | None:
    owner = supervisor.peek()
    return owner.live.get(session_id) if owner else None


def _hub() -> Hub:
    return supervisor.current().hub


def _notify(session: Session) -> None:
    """Tell who watches the session and its project's list."""
    hub = _hub()
    hub.notify(session.pk)
    hub.notify(f"project:{session.project.slug}")


def _name(user: Any) -> str | None:
    return user.get_username() if user is not None and user.pk else None
