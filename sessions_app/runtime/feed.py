"""What is new in a session for one watcher: events by seq, text by item and offset.

The live session of this process is a cache; everything is also found in the database,
which serves watchers in other processes and whoever fell behind the cache.
"""

from __future__ import annotations

from asgiref.sync import sync_to_async

from sessions_app.models import ApprovalRequest, CommandSession
from sessions_app.runtime import family, supervisor
from sessions_app.runtime.frames import Span
from sessions_app.runtime.items import kind_of
from sessions_app.runtime.live_session import LiveSession
from sessions_app.runtime.output_log import CHUNK, read_chunks, stored_ends
from traces_app import reader
from traces_app.reader import StoredEvent

PAGE = 200


class Feed:
    """Reads one session from wherever it is cheapest."""

    def __init__(self, session_id: str, trace_id: int) -> None:
        self.session_id = session_id
        self.trace_id = trace_id

    @property
    def live(self) -> LiveSession | None:
        """Return the live session if this process hosts it."""
        owner = supervisor.peek()
        return owner.live.get(self.session_id) if owner else None

    async def events(self, after: int, *, is_sure: bool = False) -> list[StoredEvent]:
        """Return up to a page of events after `after`, in order.

        The live session's cache answers first; `is_sure` asks the database, where
        another process may have written too.
        """
        live = self.live
        if live and live.recent and not is_sure:
            if after >= live.recent[-1].seq:
                return []
            if live.recent[0].seq <= after + 1:
                return [e for e in live.recent if e.seq > after][:PAGE]
        return await sync_to_async(reader.events)(
            self.trace_id, after=after, limit=PAGE
        )

    async def ends(self) -> dict[str, int]:
        """Return each streaming item and how far it reaches."""
        live = self.live
        if live:
            return live.log.ends()
        return await sync_to_async(stored_ends)(self.session_id)

    async def read(self, item: str, start: int) -> Span | None:
        """Return the item's text at `start`; None when there is none yet."""
        live = self.live
        text = live.log.read(item, start) if live else None
        if text is None:
            begin, text = await sync_to_async(read_chunks)(self.session_id, item, start)
            start, text = begin, text[:CHUNK]
        return Span(item=item, start=start, text=text) if text else None

    def open_lines(self) -> dict[str, tuple[int, str]]:
        """Return the open line per item and where it stands, for people only."""
        live = self.live
        if live is None:
            return {}
        return {
            name: (item.stop, item.open_line)
            for name, item in live.log.items.items()
            if item.kind == "output"
        }

    def bindings(self) -> dict[str, tuple[str, int]]:
        """Return which item, and from where, each running call shows."""
        return dict(self.live.sink.bindings) if self.live else {}

    @property
    def trouble(self) -> str:
        """Return why the last task stopped without a record of it."""
        return self.live.trouble if self.live else ""


def pending_requests(session_id: str) -> list[ApprovalRequest]:
    """Return what waits in the session and in its children, oldest first."""
    return list(family.pending_of(session_id).select_related("session"))


def stored_bindings(session_id: str) -> dict[str, tuple[str, int]]:
    """Return the calls whose commands have a row: each shows its command's item."""
    rows = CommandSession.objects.filter(session_id=session_id)
    return {row.tool_call_id: (row.process_id, 0) for row in rows}


def item_kind(item: str) -> str:
    """Return "text", "thinking" or "output"."""
    return kind_of(item)
