"""How actions reach a session: its row, its live side, those who watch it."""

from __future__ import annotations

from typing import Any

from sessions_app.models import Session
from sessions_app.runtime import supervisor
from sessions_app.runtime.live_session import LiveSession
from sessions_app.runtime.refusal import not_found
from traces_app.omnimessage import OmniMessage


async def find_session(session_id: str) -> Session:
    """Return the row, or raise `Refusal` 404."""
    session = (
        await Session.objects.select_related("project", "parent")
        .filter(pk=session_id, deleted_at=None)
        .afirst()
    )
    if session is None:
        raise not_found(f"The session {session_id}")
    return session


def live_session(session_id: str) -> LiveSession | None:
    """Return the live session if this process hosts it."""
    owner = supervisor.peek()
    return owner.live.get(session_id) if owner else None


def notify(session: Session) -> None:
    """Tell who watches the session and its project's list."""
    hub = supervisor.current().hub
    hub.notify(session.pk)
    hub.notify(f"project:{session.project.slug}")


async def append(session: Session, *messages: OmniMessage, also: Any = None) -> None:
    """Record beside whatever runs, through the live session when it is here."""
    live = live_session(session.pk)
    is_over = live is None or not live.is_busy  # no task's end will sign it
    if live:
        await live.append(*messages, also=also, checkpoint=is_over)
    else:
        writer = supervisor.current().writer
        await writer.append(session.trace_id, *messages, also=also, checkpoint=is_over)


async def wake(session_id: str) -> None:
    """Let the owner see new rows; without one, take the session up."""
    await supervisor.current().wake(session_id)


def username(user: Any) -> str | None:
    """Return what the record calls a person; None for nobody."""
    return user.get_username() if user is not None and user.pk else None
