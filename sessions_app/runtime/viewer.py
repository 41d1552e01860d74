"""The pump of one watcher: turns what is new in a session into frames, in order.

Flow of one round: 1. wait for a wake, a second at most. 2. Sent something less than
33 ms ago? Wait for the rest of that window, so that floods are coalesced while a
sparse line leaves at once. 3. Bindings and text for elements the watcher has.
4. Events, in order. 5. New streaming items and their text. 6. State, if it may be
another. A watcher that does not read costs at most its window: text waits in the log.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Iterator
from dataclasses import dataclass, field
from typing import Protocol

from asgiref.sync import sync_to_async

from sessions_app.runtime.feed import Feed
from sessions_app.runtime.frames import (
    BindFrame,
    ChildFrame,
    EventFrame,
    Frame,
    ItemFrame,
    LineFrame,
    ResetFrame,
    Span,
    StateFrame,
)
from sessions_app.runtime.hub import Hub, Watch
from sessions_app.runtime.items import ItemNames, is_text_item
from traces_app import reader
from traces_app.omnimessage.payloads import Subagent
from traces_app.reader import StoredEvent

FRAME_S = 0.033
STARTING = frozenset({"approval_decision", "tool_started"})
SETTLE_S = 0.008  # about what a call takes from its decision to its first output
WINDOW = 256 * 1024  # characters on their way to a watcher that has not acked them


class Followed(Protocol):
    """The subagents of a watched session, and what is new of them."""

    async def begin(self, watch: Watch, seq: int) -> None: ...

    async def adopt(self, session_id: str) -> None: ...

    def round(
        self, woken: dict[str, bool], *, is_late: bool
    ) -> AsyncGenerator[ChildFrame, None]: ...

    def catch_up(self) -> AsyncGenerator[ChildFrame, None]: ...


@dataclass(slots=True)
class Viewer:
    """One watcher's position: what it has of each item, and the last event."""

    feed: Feed
    hub: Hub
    have: dict[str, int] = field(default_factory=dict)
    seq: int = 0
    sent: int = 0  # characters of text sent
    children: Followed | None = None  # subagents that are watched too
    _acked: int = 0
    _shown: set[str] = field(default_factory=set)  # text items with an element
    _calls: set[str] = field(default_factory=set)  # calls with a card
    _bound: dict[str, tuple[str, int]] = field(default_factory=dict)
    _lines: dict[str, str] = field(default_factory=dict)
    _names: ItemNames = field(default_factory=ItemNames)
    _watch: Watch | None = None
    _is_late: bool = True  # nothing woke it: another process may have written

    async def frames(self) -> AsyncGenerator[Frame, None]:
        """Yield what the watcher lacks, for ever."""
        with self.hub.watch(self.feed.session_id) as watch:
            await self.begin(watch)
            if self.children:
                await self.children.begin(watch, self.seq)
            for reset in await self._resets():
                yield reset
            async for frame in self.news():
                yield frame
            for item in await self._gone():
                yield ResetFrame(item=item, start=0)
            while True:
                sent_at = 0.0
                async for frame in self._round(watch):
                    yield frame
                    if isinstance(frame, Span):
                        sent_at = time.monotonic()
                is_woken = await watch.wait()
                # Text waits for its window; an event that comes meanwhile does not.
                while is_woken and not watch.is_state:
                    rest = FRAME_S - (time.monotonic() - sent_at)
                    if rest <= 0:
                        break
                    await watch.wait(rest)
                watch.is_state = watch.is_state or not is_woken
                self._is_late = not is_woken

    async def begin(self, watch: Watch) -> None:
        """Find out where in the Trace the watcher is; `watch` wakes it."""
        self._names = await sync_to_async(names_at)(self.feed.trace_id, self.seq)
        self._shown = {item for item in self.have if is_text_item(item)}
        self._watch = watch

    def ack(self, received: int) -> None:
        """Take note of how much the watcher has read in all."""
        self._acked = max(self._acked, received)
        if self._watch:
            self._watch.wake(state=False)

    def ask_again(self, item: str, offset: int) -> None:
        """Send an item from `offset` on, because the watcher found a gap."""
        self.have[item] = offset
        if self._watch:
            self._watch.wake(state=False)

    async def _round(self, watch: Watch) -> AsyncGenerator[Frame, None]:
        async for frame in self._settled(watch):
            yield frame
        is_state, watch.is_state = watch.is_state, False
        is_late = self._is_late
        async for frame in self.part():
            yield frame
        if self.children:
            woken = watch.take_woken()
            async for child_frame in self.children.round(woken, is_late=is_late):
                yield child_frame
        if is_state:
            yield StateFrame()

    async def _settled(self, watch: Watch) -> AsyncGenerator[Frame, None]:
        """Let text through for a moment before a call that starts is drawn.

        Drawing takes the processor that the call needs to start, and what belongs to
        one decision comes in several events: they are drawn together.
        """
        async for frame in self._shown_text():
            yield frame
        if not any(e.kind in STARTING for e in await self.feed.events(self.seq)):
            return
        until = time.monotonic() + SETTLE_S
        while watch.is_state and (rest := until - time.monotonic()) > 0:
            if await watch.wait(rest):
                async for frame in self._shown_text():
                    yield frame

    async def part(self) -> AsyncGenerator[Frame, None]:
        """Yield what is new of the session alone."""
        async for frame in self._shown_text():
            yield frame
        async for frame in self.news(with_text=True):
            yield frame
        for binding in self._new_bindings():
            yield binding
        async for frame in self._new_items():
            yield frame
        for line in self._new_lines():
            yield line

    async def news(self, *, with_text: bool = False) -> AsyncGenerator[Frame, None]:
        """Yield the events that are new; not to be asked between two of them.

        `with_text` lets output that came meanwhile through between two events: a
        page takes milliseconds to draw one, and a first line should not wait.
        """
        events = await self.feed.events(self.seq, is_sure=self._is_late)
        self._is_late = False
        while events:
            for event in events:
                async for child_frame in self._before(event):
                    yield child_frame
                self.seq = event.seq
                if event.kind == "tool_call" and event.tool_call_id:
                    self._calls.add(event.tool_call_id)
                item = self._names.of_complete(event.message, event.seq)
                if item in self._shown:
                    self._shown.discard(item)
                    self.have.pop(item, None)
                    yield EventFrame(event=event, item=item)
                else:
                    yield EventFrame(event=event, item=None)
                if with_text:
                    async for text in self._shown_text():
                        yield text
            events = await self.feed.events(self.seq)

    async def _before(self, event: StoredEvent) -> AsyncGenerator[ChildFrame, None]:
        """Take up a new subagent; before an output, yield what led to it."""
        if self.children is None:
            return
        if isinstance(pointer := event.message.payload, Subagent):
            await self.children.adopt(pointer.session_id)
        elif event.kind == "tool_call_output":
            async for frame in self.children.catch_up():
                yield frame

    async def _shown_text(self) -> AsyncGenerator[Frame, None]:
        """Yield bindings and text of what the watcher has an element for."""
        for binding in self._new_bindings(shown_only=True):
            yield binding
        async for span in self._new_text():
            yield span

    def _new_bindings(self, *, shown_only: bool = False) -> Iterator[BindFrame]:
        """Yield what running calls show; `shown_only`: of cards already sent."""
        for call_id, bound in self.feed.bindings().items():
            if shown_only and call_id not in self._calls:
                continue
            if self._bound.get(call_id) != bound:
                self._bound[call_id] = bound
                item, start = bound
                self.have.setdefault(item, start)
                yield BindFrame(call_id=call_id, item=item, start=start)

    async def _new_text(self) -> AsyncGenerator[Span, None]:
        """Yield the next piece of each item that has an element already."""
        ends = await self.feed.ends()
        for item in list(self.have):
            end = ends.get(item)
            if end is None or end <= self.have[item]:
                continue
            if self.sent - self._acked >= WINDOW:
                return
            span = await self.feed.read(item, self.have[item])
            if span is None:
                continue
            self.have[item] = span.stop
            self.sent += len(span.text)
            if span.stop < end and self._watch:  # more to come, after this frame
                self._watch.wake(state=False, topic=self.feed.session_id)
            yield span

    async def _new_items(self) -> AsyncGenerator[Frame, None]:
        for item in await self.feed.ends():
            if is_text_item(item) and item not in self.have:
                self._shown.add(item)
                self.have[item] = 0
                yield ItemFrame(item=item)
                async for span in self._new_text():
                    yield span

    def _new_lines(self) -> Iterator[LineFrame]:
        for item, (at, text) in self.feed.open_lines().items():
            if self.have.get(item) == at and self._lines.get(item, "") != text:
                self._lines[item] = text
                yield LineFrame(item=item, at=at, text=text)

    async def _resets(self) -> list[ResetFrame]:
        """Find what the watcher has beyond the log: it was lost with its server."""
        ends = await self.feed.ends()
        resets = []
        for item, offset in list(self.have.items()):
            if item in ends and ends[item] < offset:
                self.have[item] = ends[item]
                resets.append(ResetFrame(item=item, start=ends[item]))
        return resets

    async def _gone(self) -> list[str]:
        """Find half texts the watcher shows that nobody will complete any more."""
        ends = await self.feed.ends()
        gone = [item for item in self._shown if item not in ends]
        for item in gone:
            self._shown.discard(item)
            self.have.pop(item, None)
        return gone


def names_at(trace_id: int, seq: int) -> ItemNames:
    """Return the item names as they stand after event `seq`."""
    begin = reader.last_event(trace_id, "request_begin", upto=seq)
    if begin is None:
        return ItemNames()
    names = ItemNames(begin.seq)
    for event in reader.iter_events(trace_id, after=begin.seq):
        if event.seq > seq:
            break
        names.of_complete(event.message, event.seq)
    return names
