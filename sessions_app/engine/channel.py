"""A queue between the tasks of one run that never blocks what is on record."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Generic, TypeVar

T = TypeVar("T")
ROOM = 256  # pieces that may wait for a slow reader


class Channel(Generic[T]):
    """Hands items from any number of writers to one reader, in order.

    `put` never waits; `offer` waits while the reader is `ROOM` items behind, so a
    slow reader slows its source instead of filling the memory. After `close` the
    reader gets what is there and then None; later items are dropped.
    """

    def __init__(self) -> None:
        self._items: deque[T] = deque()
        self._is_closed = False
        self._arrived = asyncio.Event()
        self._has_room = asyncio.Event()
        self._has_room.set()

    def put(self, item: T) -> None:
        """Append an item at once."""
        if self._is_closed:
            return
        self._items.append(item)
        self._arrived.set()
        if len(self._items) >= ROOM:
            self._has_room.clear()

    async def offer(self, item: T) -> None:
        """Append an item as soon as there is room."""
        await self._has_room.wait()
        self.put(item)

    def close(self, *, drop: bool = False) -> None:
        """End the channel; `drop` throws away what nobody will read."""
        self._is_closed = True
        if drop:
            self._items.clear()
        self._arrived.set()
        self._has_room.set()

    async def get(self) -> T | None:
        """Return the next item, or None at the end."""
        while not self._items:
            if self._is_closed:
                return None
            self._arrived.clear()
            await self._arrived.wait()
        item = self._items.popleft()
        if len(self._items) < ROOM:
            self._has_room.set()
        return item
