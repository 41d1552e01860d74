"""What a tool is, what it is given, and how it reports its end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from sessions_app.config.tool_definition import ToolDefinition
from traces_app.omnimessage import OmniMessage, StopReason

Approve = Callable[[OmniMessage], Awaitable[Any]]  # handed on to children, never asked


class ToolError(Exception):
    """A call that cannot be done; the text says why, and what to do instead."""


class AbortSignal:
    """Says once, to whoever listens, that something shall end.

    Belongs to one event loop; the first reason stays.
    """

    def __init__(self) -> None:
        self._reason: str | None = None
        self._callbacks: list[Callable[[], None]] = []

    @property
    def aborted(self) -> bool:
        """Return whether `abort` was called."""
        return self._reason is not None

    @property
    def reason(self) -> str | None:
        """Return the reason of the first `abort`, None before it."""
        return self._reason

    def abort(self, reason: str = "interrupt") -> None:
        """Fire; a second call does nothing."""
        if self._reason is not None:
            return
        self._reason = reason
        callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback()

    def add_callback(self, callback: Callable[[], None]) -> None:
        """Call `callback` on abort; at once when that is already past."""
        if self.aborted:
            callback()
        else:
            self._callbacks.append(callback)

    def remove_callback(self, callback: Callable[[], None]) -> None:
        """Forget `callback`; unknown ones are ignored."""
        if callback in self._callbacks:
            self._callbacks.remove(callback)

    async def wait(self) -> None:
        """Return when the signal has fired."""
        if self.aborted:
            return
        fired = asyncio.Event()
        self.add_callback(fired.set)
        try:
            await fired.wait()
        finally:
            self.remove_callback(fired.set)


@dataclass(frozen=True, slots=True, kw_only=True)
class Artifact:
    """The whole output of a call in a file, as far as it was kept."""

    path: Path
    size: int  # bytes
    sha256: str  # of the bytes; a log that still grows has another one later
    missing: int = 0  # characters between its two ends that were not kept

    def to_details(self) -> dict[str, Any]:
        """Return what `details.artifact` holds."""
        return {"path": str(self.path), "size": self.size, "sha256": self.sha256}


@dataclass(slots=True, kw_only=True)
class ToolContext:
    """What a call knows of its surroundings.

    `details` goes into the output's details: a tool adds facts as they become true,
    so that they stand there also when the call is cut off. A tool that keeps its own
    log sets `artifact`, which is asked for the file when its text is cut, and
    `on_close`, called after that. One that hands over less than was produced sets `details["output_chars"]`, and
    `details["truncated"]` where it has marked the cut itself.
    """

    workspace_dir: Path
    tool_call_id: str
    signal: AbortSignal = field(default_factory=AbortSignal)
    approve: Approve | None = None
    details: dict[str, Any] = field(default_factory=dict)
    artifact: Callable[[], Awaitable[Artifact | None]] | None = None
    on_close: Callable[[], None] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """The last thing a tool may yield; all of it is optional."""

    stop_reason: StopReason | str | None = None  # how it ended, says the tool
    note: str | None = None  # a marker after the text, outside the output cap
    images: list[str] = field(default_factory=list)  # data: URLs


class Tool(Protocol):
    """One tool of one Environment, made once from its definition.

    A class attribute `KEEPS_LOG = True` says that the tool itself tells the sink what
    it prints; `DETAILS` are facts that every output of it has.
    """

    name: str

    def __init__(self, definition: ToolDefinition) -> None: ...

    def execute(
        self, args: dict[str, Any], ctx: ToolContext
    ) -> AsyncIterator[str | OmniMessage | ToolResult]:
        """Run the call: yield text as it comes, at the end perhaps a `ToolResult`."""
        ...


ToolFactory = Callable[[ToolDefinition], Tool]
NO_DETAILS: Mapping[str, Any] = {}
