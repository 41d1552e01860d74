"""What watchers of a session see of its subagents.

A page draws a subagent from the rows, so it is told only that one is another now
(`ToldChildren`). A stream carries what a subagent says (`CarriedChildren`): each has a
viewer of its own, over its own record.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator

from asgiref.sync import sync_to_async

from sessions_app.models import Session, SubagentState
from sessions_app.runtime import family
from sessions_app.runtime.feed import Feed
from sessions_app.runtime.frames import ChildFrame
from sessions_app.runtime.hub import Hub, Watch
from sessions_app.runtime.viewer import Viewer
from traces_app import reader

_NOTHING: tuple[ChildFrame, ...] = ()
SHOWN = 50  # the newest subagents, of which a page is told when it connects


class _Children:
    """The subagents that are followed, by session id."""

    def __init__(self, feed: Feed, hub: Hub) -> None:
        self._session_id = feed.session_id
        self._trace_id = feed.trace_id
        self._hub = hub
        self._watch: Watch | None = None
        self.known: set[str] = set()

    def _follow(self, session_id: str) -> None:
        self.known.add(session_id)
        if self._watch is not None:
            self._hub.follow(self._watch, session_id)

    async def _due(
        self, woken: dict[str, bool], *, is_late: bool, state_only: bool
    ) -> list[str]:
        """Return whose news may be read: a lost hint is made good once a second."""
        due = {key for key, is_state in woken.items() if is_state or not state_only}
        if is_late and self.known:
            due |= set(await sync_to_async(_working)(self._session_id))
        return sorted(due & self.known)


def _working(session_id: str) -> list[str]:
    rows = family.children_of(session_id)
    working = rows.filter(subagent__state=SubagentState.WORKING)
    return list(working.values_list("pk", flat=True))


class ToldChildren(_Children):
    """For a page: which subagents are to be drawn anew."""

    _fresh: list[str]

    async def begin(self, watch: Watch, seq: int) -> None:
        """Follow every subagent there is; each is told of once."""
        self._watch = watch
        rows = family.children_of(self._session_id).order_by("-subagent__number")
        self._fresh = [row.pk async for row in rows[:SHOWN]][::-1]
        for session_id in self._fresh:
            self._follow(session_id)

    async def adopt(self, session_id: str) -> None:
        """Follow a new one."""
        self._follow(session_id)

    async def round(
        self, woken: dict[str, bool], *, is_late: bool
    ) -> AsyncGenerator[ChildFrame, None]:
        """Yield the subagents that may look different now."""
        fresh, self._fresh = self._fresh, []
        due = await self._due(woken, is_late=is_late, state_only=True)
        for session_id in [*fresh, *(key for key in due if key not in fresh)]:
            yield ChildFrame(session_id=session_id)

    async def catch_up(self) -> AsyncGenerator[ChildFrame, None]:
        """Yield nothing: what is drawn from rows needs no order."""
        for frame in _NOTHING:
            yield frame


class CarriedChildren(_Children):
    """For a stream: the frames of each subagent.

    `places` says after which of its events the stream goes on with a subagent; the
    others go on where they were at `moment` (a timestamp), or at what comes next.
    """

    def __init__(
        self,
        feed: Feed,
        hub: Hub,
        *,
        places: dict[str, int] | None = None,
        moment: str | None = None,
    ) -> None:
        super().__init__(feed, hub)
        self._places = places or {}
        self._moment = moment
        self.viewers: dict[str, Viewer] = {}
        self._unread: set[str] = set()  # those that were taken up just now

    async def begin(self, watch: Watch, seq: int) -> None:
        """Take up the subagents the reader knows from before `seq`."""
        self._watch = watch
        for session_id in await sync_to_async(self._before)(seq):
            place = await sync_to_async(self._place)(session_id)
            await self._add(session_id, place)

    async def adopt(self, session_id: str) -> None:
        """Carry a new one from its first message on."""
        if session_id not in self.viewers:
            await self._add(session_id, 0)

    async def _add(self, session_id: str, seq: int) -> None:
        child = await Session.objects.filter(pk=session_id).afirst()
        if child is None or self._watch is None:
            return
        self._follow(session_id)
        feed = Feed(session_id, child.trace_id)
        viewer = Viewer(feed=feed, hub=self._hub, seq=seq)
        await viewer.begin(self._watch)
        self.viewers[session_id] = viewer
        self._unread.add(session_id)
        self._watch.wake(state=False, topic=session_id)

    def _before(self, seq: int) -> list[str]:
        pointers = reader.events(self._trace_id, kinds=("subagent",), limit=10_000)
        made = [e.message.payload for e in pointers if e.seq <= seq]
        return [str(getattr(payload, "session_id", "")) for payload in made]

    def _place(self, session_id: str) -> int:
        if session_id in self._places:
            return self._places[session_id]
        child = Session.objects.filter(pk=session_id).first()
        if child is None:
            return 0
        if self._moment is None:
            return reader.head_seq(child.trace_id)
        return reader.seq_at(child.trace_id, self._moment)

    async def round(
        self, woken: dict[str, bool], *, is_late: bool
    ) -> AsyncGenerator[ChildFrame, None]:
        """Yield what is new of each."""
        for session_id in await self._due(woken, is_late=is_late, state_only=False):
            self._unread.discard(session_id)
            async for frame in self.viewers[session_id].part():
                yield ChildFrame(session_id=session_id, frame=frame)

    async def catch_up(self) -> AsyncGenerator[ChildFrame, None]:
        """Yield the new events of those that run here, or were taken up just now."""
        for session_id, viewer in list(self.viewers.items()):
            if viewer.feed.live is not None or session_id in self._unread:
                self._unread.discard(session_id)
                async for frame in viewer.news():
                    yield ChildFrame(session_id=session_id, frame=frame)
