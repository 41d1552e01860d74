"""The chat as page and socket frames draw it: turns, calls, state, addresses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Count
from django.urls import reverse

from sessions_app import runtime
from sessions_app.cards import Card, card_key, card_of, cards_of
from sessions_app.child_view import child_at, children_of
from sessions_app.models import ApprovalRequest, OutputChunk, QueuedMessage, Session
from traces_app.call_view import CallView, OutputView, view_call, view_output
from traces_app.omnimessage import payloads as p
from traces_app.output_text import TAIL_CHARACTERS, tail_of
from traces_app.spending import spending_of
from traces_app.stored_event import StoredEvent

SHOWN = 64 * 1024  # characters of a running output that a page begins with
MODEL_NAMES = {"demo/demo": "Demo (no AI)", "demo/demo-text": "Demo (no AI), text only"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """A request that failed and is tried again."""

    title: str  # a sentence without its full stop
    attempt: int
    at: datetime


def urls_of(session: Session) -> dict[str, str]:
    """Return the addresses a chat's forms and links lead to."""
    place = [session.project.slug, session.pk]
    names = {
        "chat": "chat",
        "send": "send",
        "attach": "attach",
        "detach": "detach",
        "stop": "stop",
        "mode": "set_mode",
        "draft": "save_draft",
        "recall": "recall",
        "retry": "retry",
        "kill": "kill_process",
        "input": "send_input",
        "trace": "trace",
    }
    urls = {key: reverse(name, args=place) for key, name in names.items()}
    chat = urls["chat"]
    return {
        **urls,
        "socket": f"/ws/sessions/{session.pk}/",
        "images": f"{chat}images/",
        "attached": f"{chat}attached/",
        "chats": chat.removesuffix(f"{session.pk}/"),
    }


def child_cards(
    session: Session, pending: Sequence[ApprovalRequest], *, is_fresh: bool
) -> list[Card]:
    """Return the cards of subagents' calls: no call of the chat itself is theirs."""
    cards = cards_of(pending, session, is_fresh=is_fresh)
    return [
        card
        for request, card in zip(pending, cards, strict=True)
        if request.session_id != session.pk
    ]


def state_of(
    session: Session, pending: Sequence[ApprovalRequest], *, is_fresh: bool = False
) -> dict[str, Any]:
    """Return what the state fragments of a session draw."""
    queued = QueuedMessage.objects.filter(session=session)
    return {
        "session": session,
        "pending": pending,
        "queued": list(queued.annotate(image_count=Count("images"))),
        "attached": list(runtime.in_composer(session)),
        "processes": processes_of(session.pk),
        "children": children_of(session),
        "child_cards": child_cards(session, pending, is_fresh=is_fresh),
        "oldest": f"approval-{card_key(pending[0])}" if pending else "",
        "urls": urls_of(session),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """A command that outlived its call."""

    process_id: str
    cmd: str
    started_at: datetime
    is_running: bool
    ending: str


def processes_of(session_id: str) -> list[Process]:
    """Return the session's background commands, running ones first."""
    found = [
        Process(
            process_id=row["process_id"],
            cmd=row["cmd"],
            started_at=row["started_at"],
            is_running=row["running"],
            ending=_ending(row),
        )
        for row in runtime.process_list(session_id)
    ]
    return sorted(found, key=lambda process: not process.is_running)


def _ending(row: Mapping[str, Any]) -> str:
    if row["signal"]:
        return f"ended by {row['signal']}"
    if row["exit_code"] is not None:
        return f"exited {row['exit_code']}"
    return {
        "lost": "lost: the server restarted, its end is unknown",
        "evicted": "ended to make room for a newer one",
    }.get(str(row["state"]), "ended")


class CallViewer:
    """Makes the views of a session's calls, with the cards of those that wait."""

    def __init__(
        self,
        session: Session,
        pending: Sequence[ApprovalRequest],
        *,
        bindings: Mapping[str, tuple[str, int]] | None = None,
        is_fresh: bool = False,
    ) -> None:
        self._session = session
        self._bindings = bindings or {}
        own = [request for request in pending if request.session_id == session.pk]
        self._cards = {
            request.tool_call_id: card_of(
                request, session, place=(at, len(pending)), is_fresh=is_fresh
            )
            for at, request in enumerate(pending, start=1)
            if request in own
        }

    def __call__(self, events: list[StoredEvent]) -> CallView:
        """Return the view of one call, with the subagents it made."""
        pointers = [getattr(e.message.payload, "session_id", None) for e in events]
        made = [child_at(self._session, key) for key in pointers if key is not None]
        return replace(self._view(events), nested=tuple(filter(None, made)))

    def _view(self, events: list[StoredEvent]) -> CallView:
        call_id = str(getattr(events[0].message.payload, "tool_call_id", ""))
        ended = next((e for e in events if e.kind == "tool_call_output"), None)
        card = self._cards.get(call_id)
        if ended is not None:
            output = self._output(ended)
            return view_call(events, output=output, card=card)
        view = view_call(events, card=card)
        if card is not None:
            view = replace(view, state="waiting", icon="beak", tone="beak")
        if call_id in self._bindings and view.state == "running":
            return self._running(view, *self._bindings[call_id])
        return view

    def _output(self, ended: StoredEvent) -> OutputView:
        payload = ended.message.payload
        assert isinstance(payload, p.ToolCallOutput)
        details = payload.details
        tail = download = ""
        if details.get("truncated"):
            tail = self._tail(details.get("log"))
            if details.get("artifact"):
                place = [self._session.project.slug, self._session.pk, ended.seq]
                download = reverse("output_file", args=place)
        return view_output(ended, tail=tail, download=download)

    def _tail(self, log: Any) -> str:
        """Return the end of what a call printed, from the output log."""
        if not isinstance(log, Mapping):
            return ""
        try:
            item, start, stop = str(log["item"]), int(log["start"]), int(log["stop"])
        except (KeyError, TypeError, ValueError):
            return ""
        begin = max(start, stop - TAIL_CHARACTERS)
        return tail_of(runtime.item_text(self._session.pk, item, begin, stop))

    def _running(self, view: CallView, item: str, start: int) -> CallView:
        stop = _stored_end(self._session.pk, item)
        begin = max(start, stop - SHOWN)
        text = runtime.item_text(self._session.pk, item, begin, stop)
        return replace(
            view, item=item, start=start, streamed=text, offset=begin + len(text)
        )


def _stored_end(session_id: str, item: str) -> int:
    chunks = OutputChunk.objects.filter(session_id=session_id, item=item)
    return chunks.order_by("-start").values_list("stop", flat=True).first() or 0


def model_name(session: Session) -> str:
    """Return the model as people call it."""
    name = f"{session.provider}/{session.model_id}"
    return MODEL_NAMES.get(name, name)


def retry_of(events: Sequence[StoredEvent]) -> Retry | None:
    """Return the retry that is being waited for, if the last request failed."""
    for event in reversed(events):
        payload = event.message.payload
        if isinstance(payload, p.RequestEnd):
            return retry_after(event)
        if isinstance(payload, p.RequestBegin):
            return None
    return None


def retry_after(event: StoredEvent) -> Retry | None:
    """Return what a failed request says of the next attempt."""
    payload = event.message.payload
    if not isinstance(payload, p.RequestEnd) or payload.retry_in_ms is None:
        return None
    ended = datetime.fromisoformat(event.message.timestamp)
    return Retry(
        title=(payload.error_message or f"The provider: {payload.status}").rstrip("."),
        attempt=payload.attempt or 1,
        at=ended + timedelta(milliseconds=payload.retry_in_ms),
    )


def usage_of(session: Session, events: Sequence[StoredEvent]) -> dict[str, Any] | None:
    """Return what was used so far and how full the context is."""
    window = 0
    if events and isinstance(meta := events[0].message.payload, p.SessionMeta):
        window = meta.model_context_window
    for event in reversed(events):
        payload = event.message.payload
        # A tool's own request says nothing about how full the context is.
        if isinstance(payload, p.TokenUsage) and payload.tool_call_id is None:
            return usage(session, payload, window)
    return None


def usage(session: Session, payload: p.TokenUsage, window: int) -> dict[str, Any]:
    """Return what the head of a chat shows after a request; subagents count in."""
    share = round(100 * payload.request.total / window) if window else None
    spent = spending_of(session.pk)
    return {"session": spent.usage, "cost": spent.cost_usd, "share": share}
