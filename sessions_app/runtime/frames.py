"""What a watcher is sent: one small thing each, in order."""

from __future__ import annotations

from dataclasses import dataclass

from traces_app.reader import StoredEvent


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A piece of an item; `start` is later than asked for when text is gone."""

    item: str
    start: int
    text: str

    @property
    def stop(self) -> int:
        return self.start + len(self.text)


@dataclass(frozen=True, slots=True, kw_only=True)
class EventFrame:
    """A recorded event; `item` is the streaming element it replaces, if shown."""

    event: StoredEvent
    item: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemFrame:
    """A streaming text or thought the watcher has no element for yet."""

    item: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BindFrame:
    """The output element of a call shows the item from `start` on."""

    call_id: str
    item: str
    start: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ResetFrame:
    """The watcher has text the log never made durable: cut it at `start`."""

    item: str
    start: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LineFrame:
    """The line that is still open, droppable."""

    item: str
    at: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StateFrame:
    """Something beside the Trace may have changed: status, pending calls, queue."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildFrame:
    """Something of a subagent: one frame of it, or (None) that it is another now."""

    session_id: str
    frame: Frame | None = None


Frame = (
    Span
    | EventFrame
    | ItemFrame
    | BindFrame
    | ResetFrame
    | LineFrame
    | StateFrame
    | ChildFrame
)
