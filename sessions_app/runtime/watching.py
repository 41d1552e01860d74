"""For those who look: pumps, streams, pages of the Trace. Nothing here changes a thing."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import AbstractContextManager
from typing import Any

from sessions_app.models import Session
from sessions_app.runtime import supervisor
from sessions_app.runtime.child_viewers import ToldChildren
from sessions_app.runtime.feed import Feed
from sessions_app.runtime.hub import Watch
from sessions_app.runtime.live_session import LiveSession
from sessions_app.runtime.stream import ServerSentEvent, open_stream
from sessions_app.runtime.viewer import Viewer
from traces_app import reader, window
from traces_app.models import Trace
from traces_app.omnimessage import StopReason
from traces_app.reader import StoredEvent


def trace_events(record: Session | Trace, **filters: Any) -> list[StoredEvent]:
    """Return a page of a session's Trace, ascending; an import has no session. Sync."""
    trace_id = record.pk if isinstance(record, Trace) else record.trace_id
    return reader.events(trace_id, **filters)


def newest_events(
    session: Session, *, kinds: Sequence[str], among: int = 200
) -> list[StoredEvent]:
    """Return events of the kinds among the session's last ones. Sync."""
    after = max(0, reader.head_seq(session.trace_id) - among)
    return reader.events(session.trace_id, after=after, limit=among, kinds=kinds)


def call_events(session: Session, tool_call_id: str) -> list[StoredEvent]:
    """Return all events of one call: request, decision, start, output. Sync.

    Of large images only the beginning is read.
    """
    return reader.call_events(session.trace_id, tool_call_id, is_light=True)


def window_start(session: Session, *, requests: int, before: int | None = None) -> int:
    """Return the seq a page of the session's last requests begins with. Sync."""
    return window.window_start(session.trace_id, requests=requests, before=before)


def viewer(session: Session, *, have: dict[str, int], seq: int) -> Viewer:
    """Return the pump of a page that shows the session."""
    feed, hub = Feed(session.pk, session.trace_id), supervisor.current().hub
    viewer = Viewer(feed=feed, hub=hub, have=have, seq=seq)
    viewer.children = ToldChildren(feed, hub)
    return viewer


async def stream_events(
    session: Session, last_id: str | None
) -> AsyncGenerator[ServerSentEvent, None]:
    """Return the session's stream after `last_id`; None: from what comes next.

    Its place is taken before this returns. `ValueError` when the id is not ours.
    """
    feed, hub = Feed(session.pk, session.trace_id), supervisor.current().hub
    return (await open_stream(feed, hub, last_id)).events()


def watch_project(slug: str) -> AbstractContextManager[Watch]:
    """Give a watch on the project's list of sessions."""
    return supervisor.current().hub.watch(f"project:{slug}")


def trouble(session_id: str) -> str:
    """Return why the last task stopped without a record of it, or ""."""
    live = _live(session_id)
    return live.trouble if live else ""


def outcome(session_id: str) -> StopReason | None:
    """Return how the last task of this process ended; None while it runs."""
    live = _live(session_id)
    return live.outcome if live else None


def _live(session_id: str) -> LiveSession | None:
    owner = supervisor.peek()
    return owner.live.get(session_id) if owner else None
