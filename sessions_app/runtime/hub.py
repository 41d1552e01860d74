"""Wakes whoever watches a session; carries no content, so a lost wake only delays.

In one process a wake is an `asyncio.Event`. With a shared channel layer the same
hint also reaches the other processes: one channel per process, one group per
watched session, at most one hint per session and window. Watchers look at the
database once a second in any case.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from sessions_app.runtime.tasks import TaskSet

FALLBACK_S = 1.0  # how late a lost hint may be noticed
HINT_WINDOW_S = 0.02  # hints to other processes are coalesced over this time


class Watch:
    """One watcher's wake-up; `is_state` tells that more than output may be new."""

    def __init__(self) -> None:
        self._event = asyncio.Event()
        self.is_state = True
        self.topics: set[str] = set()
        self._woken: dict[str, bool] = {}

    def wake(self, *, state: bool = True, topic: str | None = None) -> None:
        """Let `wait` return."""
        self.is_state = self.is_state or state
        if topic is not None:
            self._woken[topic] = state or self._woken.get(topic, False)
        self._event.set()

    def take_woken(self) -> dict[str, bool]:
        """Return the topics that woke it since this was last asked: is it state?"""
        woken, self._woken = self._woken, {}
        return woken

    async def wait(self, timeout_s: float = FALLBACK_S) -> bool:
        """Wait for a wake and take it; False when the time ran out."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._event.wait()
        except TimeoutError:
            return False
        self._event.clear()
        return True


class Hub:
    """All watchers of this process, by topic: a session id or `project:<slug>`."""

    def __init__(self, layer: Any = None) -> None:
        self._watches: defaultdict[str, set[Watch]] = defaultdict(set)
        self._layer = layer  # None: nobody else is to be told
        self._channel: str | None = None
        self._hinted: set[str] = set()
        self._tasks = TaskSet()

    @contextlib.contextmanager
    def watch(self, *topics: str) -> Iterator[Watch]:
        """Give a watch on the topics for the time of the `with` block."""
        watch = Watch()
        for topic in topics:
            self.follow(watch, topic)
        try:
            yield watch
        finally:
            for topic in watch.topics:
                self._watches[topic].discard(watch)
                if not self._watches[topic]:
                    del self._watches[topic]
                    if self._layer:
                        self._tasks.spawn(self._leave(topic), f"leave {topic}")

    def follow(self, watch: Watch, topic: str) -> None:
        """Let one more topic wake the watch, until its `with` block ends."""
        watch.topics.add(topic)
        self._watches[topic].add(watch)
        if self._layer and len(self._watches[topic]) == 1:
            self._tasks.spawn(self._join(topic), f"join {topic}")

    def notify(self, topic: str, *, state: bool = True) -> None:
        """Wake the topic's watchers here and, soon, in the other processes."""
        self._wake(topic, state=state)
        if self._layer and topic not in self._hinted:
            self._hinted.add(topic)
            self._tasks.spawn(self._hint(topic), f"hint {topic}")

    def _wake(self, topic: str, *, state: bool) -> None:
        for watch in self._watches.get(topic, ()):
            watch.wake(state=state, topic=topic)

    async def _hint(self, topic: str) -> None:
        await asyncio.sleep(HINT_WINDOW_S)
        self._hinted.discard(topic)
        message = {"type": "hint", "topic": topic}
        await self._layer.group_send(_group(topic), message)

    async def _join(self, topic: str) -> None:
        if self._channel is None:
            self._channel = await self._layer.new_channel("penguin")
            self._tasks.spawn(self._listen(self._channel), "hub")
        await self._layer.group_add(_group(topic), self._channel)

    async def _leave(self, topic: str) -> None:
        if self._channel and topic not in self._watches:
            await self._layer.group_discard(_group(topic), self._channel)

    async def _listen(self, channel: str) -> None:
        while True:
            message = await self._layer.receive(channel)
            self._wake(message["topic"], state=True)

    async def aclose(self) -> None:
        """Stop listening and hinting."""
        await self._tasks.cancel()


def _group(topic: str) -> str:
    """Return a group name a channel layer takes: letters, digits, `-_.`."""
    return "hint." + re.sub(r"[^A-Za-z0-9_.-]", ".", topic)[:90]
