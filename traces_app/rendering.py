"""Events of a Trace as a reader sees them: view-models of a conversation.

Responsibilities: one event or the events of one call become an entry with the name
of its template; entries become turns. Chat page, socket frames and trace viewer
draw the same entries. What a call's card needs beyond its events belongs to the
product, not here. The look of a call is in `call_view`, one row of the viewer in
`event_row`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from traces_app.call_view import CallView, view_call
from traces_app.figures import duration
from traces_app.omnimessage import OmniMessage, StopReason
from traces_app.omnimessage import payloads as p
from traces_app.pictures import Picture, pictures_of
from traces_app.prose import SafeMarkup, to_html
from traces_app.stored_event import StoredEvent

TITLE_LENGTH = 60
_WHY_SYNTHETIC = {
    "retry": "Told the model: what the broken attempt had produced",
    "carry_over": "Told the model: what was produced before the stop",
    "recovery": "Told the model: what the restart cut off",
    "processes": "Told the model: commands that ended meanwhile",
    "notice": "Told the model",
    "images_removed": "Told the model: images were removed",
    "summary": "Summary of the conversation so far",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageView:
    """What a person wrote (plain text) or the model answered (Markdown)."""

    template: ClassVar[str] = "traces_app/partials/message.html"
    seq: int
    timestamp: str
    role: p.Role
    author: str
    text: str
    html: SafeMarkup
    suggestions: tuple[str, ...] = ()  # messages offered as buttons


@dataclass(frozen=True, slots=True, kw_only=True)
class FoldView:
    """A folded text: thinking, or what the product told the model."""

    template: ClassVar[str] = "traces_app/partials/fold.html"
    seq: int
    label: str
    icon: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PictureView:
    """An image in the conversation."""

    template: ClassVar[str] = "traces_app/partials/picture.html"
    seq: int
    picture: Picture


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteView:
    """One line about the session: stopped, failed, mode changed, recovered."""

    template: ClassVar[str] = "traces_app/partials/note.html"
    seq: int
    timestamp: str
    icon: str
    title: str
    text: str = ""
    tone: str = ""
    session_id: str = ""  # of a subagent


Entry = MessageView | FoldView | PictureView | NoteView | CallView


@dataclass(frozen=True, slots=True, kw_only=True)
class Streaming:
    """A text or thought that is still being written."""

    item: str
    kind: str  # "text" or "thinking"
    text: str
    offset: int  # one past its last character


@dataclass(slots=True, kw_only=True)
class Turn:
    """A message of a person and everything that followed from it."""

    seq: int  # of that message; 0: what came before the first
    title: str = ""
    entries: list[Entry] = field(default_factory=list)
    streaming: list[Streaming] = field(default_factory=list)


def starts_turn(message: OmniMessage) -> bool:
    """Return whether a person typed this message."""
    payload = message.payload
    return (
        isinstance(payload, p.Text)
        and payload.role == "user"
        and payload.synthetic is None
    )


def turn_title(text: str) -> str:
    """Return the first line of a message, cut to a title's length."""
    line = next((line for line in text.splitlines() if line.strip()), "").strip()
    return line if len(line) <= TITLE_LENGTH else line[: TITLE_LENGTH - 1] + "…"


def conversation(
    events: Iterable[StoredEvent],
    *,
    agent: str,
    author: str,
    view: Callable[[list[StoredEvent]], CallView] = view_call,
) -> list[Turn]:
    """Return the turns of a Trace; the first holds what came before any message.

    `view` makes the view of one call from its events; the product passes its own.
    """
    turns = [Turn(seq=0)]
    calls: dict[str, list[StoredEvent]] = {}
    places: dict[str, tuple[list[Entry | None], int]] = {}
    entries: list[Entry | None] = []
    slots = [entries]
    for event in events:
        call_id = getattr(event.message.payload, "tool_call_id", None)
        is_pointer = event.kind == "subagent"
        if call_id is not None and (call_id in places or not is_pointer):
            if event.kind == "tool_call":
                places[call_id] = (entries, len(entries))
                entries.append(None)
            calls.setdefault(call_id, []).append(event)
            continue
        if starts_turn(event.message):
            entries = []
            slots.append(entries)
            turns.append(Turn(seq=event.seq, title=_title(event)))
        entry = entry_of(event, agent=agent, author=author)
        if entry is not None:
            entries.append(entry)
    for call_id, (place, index) in places.items():
        place[index] = view(calls[call_id])
    for turn, found in zip(turns, slots, strict=True):
        turn.entries = [entry for entry in found if entry is not None]
    return turns


def _title(event: StoredEvent) -> str:
    payload = event.message.payload
    return turn_title(payload.text) if isinstance(payload, p.Text) else ""


def entry_of(event: StoredEvent, *, agent: str, author: str) -> Entry | None:
    """Return what one event adds to the conversation, or None. Calls: `view_call`."""
    message = event.message
    payload = message.payload
    match payload:
        case p.Text():
            return _text(event, payload, agent=agent, author=author)
        case p.Thinking(thinking=text):
            return FoldView(seq=event.seq, label="Thinking", icon="think", text=text)
        case p.ImageUrl() | p.InlineData():
            return PictureView(seq=event.seq, picture=pictures_of(payload)[0])
    note = _NOTES.get(event.kind)
    words = note(payload) if note else None
    if words is None:
        return None
    return NoteView(seq=event.seq, timestamp=message.timestamp, **words)


def _text(
    event: StoredEvent, payload: p.Text, *, agent: str, author: str
) -> MessageView | FoldView | NoteView:
    if payload.synthetic == "notice" and payload.role == "assistant":
        return NoteView(
            seq=event.seq,
            timestamp=event.message.timestamp,
            icon="warning",
            title="Stopped",
            text=payload.text,
            tone="krill",
        )
    if payload.synthetic is not None:
        label = _WHY_SYNTHETIC.get(payload.synthetic, "Told the model")
        return FoldView(seq=event.seq, label=label, icon="info", text=payload.text)
    is_user = payload.role == "user"
    suggestions = payload.extra.get("suggestions", ())
    return MessageView(
        seq=event.seq,
        timestamp=event.message.timestamp,
        role=payload.role,
        author=(payload.author or author) if is_user else agent,
        text=payload.text,
        html=SafeMarkup() if is_user else to_html(payload.text),
        suggestions=tuple(s for s in suggestions if isinstance(s, str)),
    )


def _request_end(payload: Any) -> Mapping[str, str] | None:
    if payload.status in (StopReason.COMPLETED, StopReason.ABORTED):
        return None
    title = {
        StopReason.AUTH: "The provider refused the credentials.",
        StopReason.TIMEOUT: "The provider did not answer in time.",
        StopReason.MALFORMED: "The provider's answer broke off.",
    }.get(payload.status, "The provider failed.")
    said = payload.error_message.rstrip(".") if payload.error_message else ""
    text = f"{said[:1].upper()}{said[1:]}." if said else ""
    if payload.retry_in_ms is not None:
        wait = duration(payload.retry_in_ms)
        text += f" Attempt {payload.attempt or 1}; the next follows after {wait}."
    else:
        text += " What ran is not run again; send a message to go on."
    return {"icon": "warning", "title": title, "text": text.strip(), "tone": "krill"}


def _mode_changed(payload: Any) -> Mapping[str, str]:
    by = f" by {payload.by}" if payload.by else ""
    title = f"Approval mode {payload.to_mode}"
    return {"icon": "settings", "title": title, "text": f"was {payload.from_mode}{by}"}


def _abort(payload: Any) -> Mapping[str, str]:
    return {"icon": "stop", "title": "Stopped", "text": payload.reason}


def _recovered(payload: Any) -> Mapping[str, str]:
    return {"icon": "retry", "title": "Recovered", "text": payload.what}


def _evicted(payload: Any) -> Mapping[str, str]:
    text = f"{payload.process_id} was ended to make room for a newer command"
    return {"icon": "terminal", "title": "Command ended", "text": text}


def _compaction(payload: Any) -> Mapping[str, str]:
    return {"icon": "collapse", "title": "Compacting", "text": payload.reason}


def _compacted(payload: Any) -> Mapping[str, str]:
    is_done = payload.status == StopReason.COMPLETED
    text = "the conversation was summarised" if is_done else "the old context stays"
    return {"icon": "collapse", "title": f"Compaction {payload.status}", "text": text}


def _damaged(payload: Any) -> Mapping[str, str]:
    title = f"Line {payload.line} of the imported file could not be read"
    return {
        "icon": "warning",
        "title": title,
        "text": payload.reason,
        "tone": "krill",
    }


def _subagent(payload: Any) -> Mapping[str, str]:
    child = payload.session_id
    return {"icon": "agent", "title": "Subagent", "text": child, "session_id": child}


_NOTES: dict[str, Callable[[Any], Mapping[str, str] | None]] = {
    "request_end": _request_end,
    "mode_changed": _mode_changed,
    "abort": _abort,
    "recovered": _recovered,
    "process_evicted": _evicted,
    "compaction_begin": _compaction,
    "compaction_end": _compacted,
    "damaged": _damaged,
    "subagent": _subagent,
}
