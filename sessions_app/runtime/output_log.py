"""The log of what streams in one session: append-only items with absolute offsets.

Responsibilities: keep the newest text of each item in a ring in memory, make it
durable in chunks, hand out any span by offset, slow a producer that is too far
ahead of the disk. Offsets are characters from the item's beginning.

Flow: 1. `append` puts text into the ring. 2. The flusher stores what is not durable
every 250 ms, or as soon as 64 KB are there. 3. What is durable may leave the ring.
4. Readers take spans from the ring, else from the chunks. 5. `close` forgets an item
whose complete message is recorded; `finish` keeps a command's chunks for reading.

Who is told of new text is the hub's matter; what a page does with it, the viewer's.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from dataclasses import dataclass, field

from asgiref.sync import sync_to_async
from django.db import models

from sessions_app.models import OutputChunk
from sessions_app.runtime.tasks import TaskSet

logger = logging.getLogger(__name__)

RING = 256 * 1024  # characters kept in memory once they are durable
CHUNK = 64 * 1024  # characters that are stored at once
FLUSH_S = 0.25
AHEAD = 1024 * 1024  # characters that may wait for the disk before the producer does
HEAD = TAIL = 8 * 1024 * 1024  # what is kept of an endless output


@dataclass(slots=True)
class Item:
    """One streaming item; `pieces` are (start, text), oldest first."""

    kind: str  # "output", "text" or "thinking"
    start: int = 0  # where the ring begins
    stop: int = 0  # one past the last character
    durable: int = 0  # up to here it is in the database
    pieces: deque[tuple[int, str]] = field(default_factory=deque)
    open_line: str = ""
    is_finished: bool = False


class OutputLog:
    """The items of one live session."""

    def __init__(self, session_id: str) -> None:
        self._session_id = session_id
        self._items: dict[str, Item] = {}
        self._closed: set[str] = set()
        self._retired: dict[str, int] = {}  # in the database alone: where they end
        self._due = asyncio.Event()
        self._stored = asyncio.Condition()
        self._tasks = TaskSet()
        self._flusher: asyncio.Task[None] | None = None
        self._storing = asyncio.Lock()

    @property
    def items(self) -> dict[str, Item]:
        """Return the items in memory, in the order they began."""
        return self._items

    def append(self, item_id: str, text: str, kind: str = "output") -> None:
        """Add text to the item; text for a closed item is dropped."""
        if not text or item_id in self._closed:
            return
        item = self._items.get(item_id)
        if item is None:
            item = self._items[item_id] = Item(kind=kind)
        item.open_line = ""
        last = item.pieces[-1] if item.pieces else None
        if last and len(last[1]) < 4096 and last[0] >= item.durable:
            item.pieces[-1] = (last[0], last[1] + text)
        else:
            item.pieces.append((item.stop, text))
        item.stop += len(text)
        self._trim(item)
        if self._flusher is None:
            self._flusher = self._tasks.spawn(self._flush_for_ever(), "output log")
        if item.stop - item.durable >= CHUNK:
            self._due.set()

    def set_open_line(self, item_id: str, text: str) -> None:
        """Remember the line that is still open, for people only."""
        item = self._items.setdefault(item_id, Item(kind="output"))
        item.open_line = text

    def read(self, item_id: str, start: int, limit: int = CHUNK) -> str | None:
        """Return up to `limit` characters from `start`; None: not in the ring."""
        item = self._items.get(item_id)
        if item is None or start < item.start:
            return None
        if start >= item.stop:
            return ""
        parts: list[str] = []
        size = 0
        for begin, text in item.pieces:
            if begin + len(text) <= start:
                continue
            part = text[max(0, start - begin) :][: limit - size]
            parts.append(part)
            size += len(part)
            if size >= limit:
                break
        return "".join(parts)

    async def drain(self, item_id: str) -> None:
        """Wait until the item is no longer too far ahead of what is durable."""
        item = self._items.get(item_id)
        if item is None or item.stop - item.durable < AHEAD:
            return
        self._due.set()
        async with self._stored:
            await self._stored.wait_for(lambda: item.stop - item.durable < AHEAD)

    async def close(self, item_id: str) -> None:
        """Forget an item: the complete message says it all."""
        self._closed.add(item_id)
        item = self._items.pop(item_id, None)
        if item and item.durable:
            await sync_to_async(self._delete)(item_id)

    async def finish(self, item_id: str) -> None:
        """Store the rest of an item that will not grow any more."""
        if item := self._items.get(item_id):
            item.is_finished = True
            await self.flush()

    async def retire(self, item_id: str) -> None:
        """Store the rest of an item and keep it in the database alone."""
        await self.finish(item_id)
        item = self._items.get(item_id)
        if item and item.durable == item.stop:
            self._retired[item_id] = item.stop
            del self._items[item_id]

    def ends(self) -> dict[str, int]:
        """Return how far each item reaches, those on disk alone included."""
        ends = dict(self._retired)
        ends.update((name, item.stop) for name, item in self._items.items())
        return ends

    async def flush(self) -> None:
        """Make everything durable."""
        async with self._storing:
            rows = []
            ends: list[tuple[Item, int]] = []
            for item_id, item in list(self._items.items()):
                text = self.read(item_id, item.durable, item.stop - item.durable)
                if not text:
                    continue
                rows += self._rows(item_id, item.durable, text)
                ends.append((item, item.durable + len(text)))
            if rows:
                await sync_to_async(self._store)(rows)
            for item, end in ends:
                item.durable = end
                self._trim(item)
        async with self._stored:
            self._stored.notify_all()

    async def aclose(self) -> None:
        """Make everything durable and stop."""
        await self._tasks.cancel()
        await self.flush()

    async def _flush_for_ever(self) -> None:
        while True:
            try:
                async with asyncio.timeout(FLUSH_S):
                    await self._due.wait()
            except TimeoutError:
                pass
            self._due.clear()
            try:
                await self.flush()
            except Exception:
                # The disk may be full for a while: what is in memory stays there,
                # and the producer waits in `drain` at the limit.
                logger.exception("Output of %s is not durable yet", self._session_id)
                await asyncio.sleep(1)

    def _rows(self, item_id: str, start: int, text: str) -> list[OutputChunk]:
        return [
            OutputChunk(
                session_id=self._session_id,
                item=item_id,
                start=start + at,
                stop=start + min(at + CHUNK, len(text)),
                text=text[at : at + CHUNK],
            )
            for at in range(0, len(text), CHUNK)
        ]

    def _store(self, rows: list[OutputChunk]) -> None:
        OutputChunk.objects.bulk_create(rows, ignore_conflicts=True)
        for item_id, stop in {row.item: row.stop for row in rows}.items():
            if stop > HEAD + TAIL:  # the middle of an endless output goes
                OutputChunk.objects.filter(
                    session_id=self._session_id,
                    item=item_id,
                    start__gte=HEAD,
                    stop__lt=stop - TAIL,
                ).delete()

    def _delete(self, item_id: str) -> None:
        OutputChunk.objects.filter(session_id=self._session_id, item=item_id).delete()

    @staticmethod
    def _trim(item: Item) -> None:
        """Let the oldest durable pieces leave the ring."""
        while item.pieces and item.stop - item.start > RING:
            begin, text = item.pieces[0]
            if begin + len(text) > item.durable:
                return
            item.pieces.popleft()
            item.start = begin + len(text)


def read_chunks(session_id: str, item_id: str, start: int) -> tuple[int, str]:
    """Return the stored text at `start` and where it really begins.

    The beginning is later than asked for when the middle of a long output is gone;
    an empty text means that nothing at or after `start` is stored.
    """
    chunk = (
        OutputChunk.objects.filter(session_id=session_id, item=item_id, stop__gt=start)
        .order_by("start")
        .first()
    )
    if chunk is None:
        return start, ""
    begin = max(start, chunk.start)
    return begin, chunk.text[begin - chunk.start :]


def stored_ends(session_id: str) -> dict[str, int]:
    """Return how far each stored item of the session reaches."""
    rows = (
        OutputChunk.objects.filter(session_id=session_id)
        .values_list("item")
        .annotate(end=models.Max("stop"))
        .order_by("item")
    )
    return dict(rows)
