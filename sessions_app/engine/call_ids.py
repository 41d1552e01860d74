"""Keeps every tool_call_id unique in its session."""

from __future__ import annotations

import re
import secrets
from collections.abc import Set

# Ids stand in addresses and element ids of the page.
_USABLE = re.compile(r"[A-Za-z0-9_.:-]{1,64}")


class CallIds:
    """Gives the calls of one stream their ids: the model's own, or a new one.

    Some servers count from `call_0` in each answer, repeat an id, or send none.
    """

    def __init__(self, used: Set[str]) -> None:
        self._used = used
        self._open: dict[str, str] = {}

    def for_piece(self, wire_id: str) -> str:
        """Return the id of the call that streams under `wire_id`."""
        if wire_id not in self._open:
            is_usable = _USABLE.fullmatch(wire_id) and not self._is_taken(wire_id)
            self._open[wire_id] = wire_id if is_usable else self._fresh()
        return self._open[wire_id]

    def for_call(self, wire_id: str) -> str:
        """Return the id of the call that is complete now; the next gets another."""
        name = self.for_piece(wire_id)
        del self._open[wire_id]
        return name

    def _fresh(self) -> str:
        while self._is_taken(name := f"call_{secrets.token_hex(4)}"):
            pass
        return name

    def _is_taken(self, name: str) -> bool:
        return name in self._used or name in self._open.values()
