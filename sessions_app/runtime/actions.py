"""What people and programs do to sessions: messages, decisions, modes, stops.

These belong to the server's event loop. Each writes rows first and wakes whoever acts
on them; what cannot be done raises `Refusal` and changes nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial
from typing import Any

from asgiref.sync import sync_to_async

from sessions_app.models import ApprovalRequest, CommandSession, Project, Session
from sessions_app.runtime import decisions, family, sessions, supervisor
from sessions_app.runtime.images import load_images
from sessions_app.runtime.reach import (
    append,
    find_session,
    live_session,
    notify,
    username,
    wake,
)
from sessions_app.runtime.refusal import conflict, invalid, not_found
from sessions_app.runtime.sessions import Wish
from sessions_app.runtime.snapshot import process_list
from traces_app.omnimessage import event
from traces_app.omnimessage.payloads import ModeChanged


async def create_session(
    *, project: Project, user: Any, any_workspace: bool = False, **wish: Any
) -> Session:
    """Make a session; raises `Refusal` 422 naming the field that cannot be."""
    asked = Wish(any_workspace=any_workspace, **wish)
    session = await sync_to_async(sessions.create)(project, user, asked)
    notify(session)
    return session


async def start_task(
    session_id: str,
    *,
    text: str,
    images: Sequence[str] = (),
    attached: Collection[int] = (),
    user: Any = None,
    queue: bool = False,
) -> bool:
    """Take a message, durably; True when it started a task, False when it waits.

    `images` are data: or http(s) URLs, `attached` ids of images in the composer.
    """
    owner = supervisor.current()
    if (await find_session(session_id)).parent_id:
        raise conflict(
            "follows_parent",
            "A subagent takes its tasks from the session it works for: write there.",
        )
    loaded = await load_images(session_id, images)
    async with owner.starting[session_id]:
        live = await owner.open(session_id)
        starts = await sync_to_async(sessions.enqueue)(
            session_id,
            text=text,
            images=loaded,
            attached=attached,
            user=user if user is not None and user.pk else None,
            queue=queue,
            is_busy=live.has_task,
        )
        if starts:
            await live.until_free()
            await owner.run(session_id)
    owner.hub.notify(session_id)
    notify(await find_session(session_id))
    return starts


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
        username=username(user),
        via=via,
        reason=reason,
        arguments_sha256=arguments_sha256,
        attempt=attempt,
    )
    live = live_session(session_id)
    if live and live.desk and not row.decision_recorded:
        live.desk.hear(row)
    await wake(session_id)
    return row


async def set_mode(session_id: str, mode: str, *, user: Any = None) -> None:
    """Change the approval mode, on record, and re-decide what is pending."""
    decisions.check_mode(mode)
    session = await find_session(session_id)
    if session.parent_id:
        raise conflict("follows_parent", "A subagent's mode follows its parent's.")
    if session.approval_mode == mode:
        return
    changed = ModeChanged(
        from_mode=session.approval_mode, to_mode=mode, by=username(user)
    )
    also = partial(decisions.mode_rows, session_id, mode, username(user))
    await append(session, event(changed), also=also)
    await wake(session_id)
    async for child in family.children_of(session_id):
        # The record of a subagent says under which mode its calls are decided.
        await append(child, event(changed))
        await wake(child.pk)


async def rename(session_id: str, title: str, *, user: Any = None) -> None:
    """Give the session another title."""
    session = await find_session(session_id)
    if len(title) > 200:
        raise invalid("title", f"The title has {len(title)} characters; 200 fit.")
    await Session.objects.filter(pk=session_id).aupdate(title=title.strip())
    notify(session)


async def save_draft(session_id: str, text: str) -> None:
    """Keep what stands in the composer, for a reload or another device."""
    await Session.objects.filter(pk=session_id).aupdate(draft=text[: sessions.MAX_TEXT])


async def recall_queued(session_id: str, queued_id: int, *, user: Any = None) -> str:
    """Take a queued message back and return its text; 409 once delivered."""
    text = await sync_to_async(sessions.recall)(session_id, queued_id)
    supervisor.current().hub.notify(session_id)
    return text


async def retry_now(session_id: str, *, user: Any = None) -> None:
    """Skip the wait before the next attempt at a request."""
    live = live_session(session_id)
    if live and live.loop:
        live.loop.retry_now()


async def processes(session_id: str) -> list[dict[str, Any]]:
    """Return the session's processes as `env.processes()` lists them."""
    live = live_session(session_id)
    if live and live.environment:
        return live.environment.processes()
    rows = await sync_to_async(process_list)(session_id)
    return [row for row in rows if row["state"] != "evicted"]


async def kill_process(session_id: str, process_id: str, *, user: Any = None) -> None:
    """End a command session; 404 when it is not one of this session."""
    live = live_session(session_id)
    if live and live.environment and await live.environment.kill_process(process_id):
        supervisor.current().hub.notify(session_id)
        return
    rows = CommandSession.objects.filter(session_id=session_id, process_id=process_id)
    if not await rows.aexists():
        raise not_found(f"The process {process_id}")


async def send_input(
    session_id: str, process_id: str, chars: str, *, user: Any = None
) -> None:
    """Type into a running command as a person does; the text is kept nowhere."""
    live = live_session(session_id)
    delivered = 0
    if live and live.environment:
        delivered = await live.environment.send_input(process_id, chars)
    if delivered < len(chars):
        raise conflict(
            "not_delivered",
            f"The process {process_id} took {delivered} of {len(chars)} characters: "
            "it has ended, or it does not read its input.",
        )
