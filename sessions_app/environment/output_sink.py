"""Where an Environment tells of output and processes, for people who watch.

The sink sees every character a tool produced, before any cut, as plain text with
offsets that follow from the order of the writes. All calls are made on the event
loop; only `drain` may wait.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessChange:
    """A command session began, ended or lost its place."""

    change: Literal["started", "backgrounded", "exited", "evicted"]
    process_id: str
    pid: int
    start_ticks: int  # field 22 of /proc/PID/stat: tells a reused pid apart
    cmd: str
    cwd: str
    tool_call_id: str  # the exec_command that started it
    exit_code: int | None = None
    signal: str | None = None  # "SIGINT"


class OutputSink(Protocol):
    """Receives output per item: a `process_id`, or a `tool_call_id` elsewhere."""

    def bind(self, tool_call_id: str, item_id: str) -> None:
        """Say that the call shows the item, from the item's present end on."""
        ...

    def write(self, item_id: str, text: str) -> None:
        """Append resolved text to the item's log."""
        ...

    def open_line(self, item_id: str, text: str) -> None:
        """Show the line that is still open; droppable, replaced by the next."""
        ...

    async def drain(self, item_id: str) -> None:
        """Wait while the item's log is too far ahead of what is durable."""
        ...

    def process(self, change: ProcessChange) -> None:
        """Take note of a command session's life."""
        ...


class NullSink:
    """Nobody watches."""

    def bind(self, tool_call_id: str, item_id: str) -> None:
        """Ignore."""

    def write(self, item_id: str, text: str) -> None:
        """Ignore."""

    def open_line(self, item_id: str, text: str) -> None:
        """Ignore."""

    async def drain(self, item_id: str) -> None:
        """Return at once."""

    def process(self, change: ProcessChange) -> None:
        """Ignore."""
