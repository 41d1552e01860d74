"""Command sessions of one Environment: waiting times, unread text, the table."""

from __future__ import annotations

import sys
from collections import deque

MIN_YIELD_MS = 250
_BEFORE_TIMEOUT_MS = 1000  # a call yields this long before it would time out


def clamp_yield_ms(given: float | None, *, default: int, timeout_ms: int) -> float:
    """Return how long a call waits, kept below the tool's timeout."""
    wanted = max(default if given is None else given, MIN_YIELD_MS)
    if timeout_ms <= 0:
        return min(wanted, sys.maxsize)
    return min(wanted, max(timeout_ms - _BEFORE_TIMEOUT_MS, MIN_YIELD_MS))


class UnreadText:
    """Text that no call has returned yet: its beginning, and its rolling end.

    Beyond both, the middle is only counted. `total` counts since the last `restart`.
    """

    def __init__(self, *, head: int) -> None:
        self.restart(head=head, tail=0)

    def restart(self, *, head: int, tail: int) -> None:
        """Count anew, and keep so many characters of each end; drops what is held."""
        self.total = 0
        self._head_room = head
        self._head: list[str] = []
        self._tail: deque[str] = deque()
        self._tail_length = 0
        self._tail_cap = tail

    def add(self, text: str) -> bool:
        """Take text that was produced; return whether the head got more of it."""
        self.total += len(text)
        is_head = bool(self._head_room)
        if is_head:
            head = text[: self._head_room]
            self._head.append(head)
            self._head_room -= len(head)
            text = text[len(head) :]
        if not text or not self._tail_cap:
            return is_head
        self._tail.append(text[-self._tail_cap :])
        self._tail_length += len(self._tail[-1])
        while self._tail_length - len(self._tail[0]) >= self._tail_cap:
            self._tail_length -= len(self._tail.popleft())
        return is_head

    def take_head(self) -> str:
        """Return what is new of the beginning."""
        head = "".join(self._head)
        self._head.clear()
        return head

    def tail(self) -> str:
        """Return the end, as far as it is kept."""
        text = "".join(self._tail)
        return text[-self._tail_cap :] if self._tail_cap else ""
