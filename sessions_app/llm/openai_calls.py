"""Assembles the tool calls of one chat completion from their fragments.

A call is complete when the next one began and its arguments are an object by then,
else when the stream says so (`complete_all`). Complete calls come in the order they
began, so a call waits for an earlier one whose fragments are still interleaved.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator, Mapping
from typing import Any

from sessions_app.llm.client import MalformedStreamError
from sessions_app.llm.pieces import CallPart
from traces_app.omnimessage import OmniMessage

_OF_THE_PROTOCOL = {"index", "id", "type", "function"}


class Calls:
    """The calls of one answer."""

    def __init__(self) -> None:
        self._calls: list[_Call] = []  # in the order they began
        self._at: dict[Any, _Call] = {}  # the call that fragments of an index continue
        self._completed = 0

    def __bool__(self) -> bool:
        return bool(self._calls)

    @property
    def open_name(self) -> str | None:
        """Return the tool's name of the first call that is not complete."""
        open_calls = self._calls[self._completed :]
        return open_calls[0].name if open_calls else None

    def feed(self, fragment: Mapping[str, Any]) -> Iterator[OmniMessage]:
        """Take one fragment; yields its pieces and calls that it completes."""
        index = fragment.get("index")
        call = self._at.get(index)
        if call is None or _begins_another(fragment, call):
            call = _Call(wire_id=fragment.get("id") or "", used=self._ids())
            yield from self._complete(_Call.has_object)
            self._calls.append(call)
            self._at[index] = call
        yield from call.feed(fragment)

    def complete_all(self) -> Iterator[OmniMessage]:
        """Yield every call that is left; the stream said that they are whole."""
        yield from self._complete(lambda call: True)

    def _complete(self, is_whole: Any) -> Iterator[OmniMessage]:
        while self._completed < len(self._calls):
            call = self._calls[self._completed]
            if not is_whole(call):
                return
            self._completed += 1
            yield from call.close()

    def _ids(self) -> set[str]:
        return {call.tool_call_id for call in self._calls}


class _Call:
    """One call; its name may come after its first fragment, an id not at all."""

    def __init__(self, *, wire_id: str, used: set[str]) -> None:
        self.wire_id = wire_id
        is_usable = wire_id and wire_id not in used
        self.tool_call_id = wire_id if is_usable else f"call_{secrets.token_hex(8)}"
        self.name = ""
        self._part: CallPart | None = None  # None until the name is known
        self._early = ""
        self._extra: dict[str, Any] = {}

    def feed(self, fragment: Mapping[str, Any]) -> Iterator[OmniMessage]:
        function = fragment.get("function") or {}
        # Some providers sign their calls and want the signature back.
        self._extra |= {k: v for k, v in fragment.items() if k not in _OF_THE_PROTOCOL}
        arguments = function.get("arguments") or ""
        self.name = self.name or function.get("name") or ""
        if not self.name:
            self._early += arguments
            return
        if self._part is None:
            self._part = CallPart(tool_call_id=self.tool_call_id, name=self.name)
            yield self._part.start()
            arguments = self._early + arguments
        yield from self._part.delta(arguments)

    def has_object(self) -> bool:
        try:
            value = json.loads(self._part.arguments if self._part else "")
        except (ValueError, RecursionError):
            return False
        return isinstance(value, dict)

    def close(self) -> Iterator[OmniMessage]:
        if self._part is None:
            raise MalformedStreamError("the provider sent a tool call without a name")
        if not self._part.arguments:  # a call without arguments may come without text
            yield from self._part.delta("{}")
        fidelity = {"chat": self._extra} if self._extra else None
        yield from self._part.close(fidelity=fidelity)


def _begins_another(fragment: Mapping[str, Any], call: _Call) -> bool:
    """Tell a new call from a continued one for servers that do not number theirs."""
    wire_id = fragment.get("id") or ""
    if wire_id:
        return call.wire_id not in ("", wire_id)
    has_name = bool((fragment.get("function") or {}).get("name"))
    return has_name and bool(call.name) and fragment.get("index") is None
