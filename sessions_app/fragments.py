"""What a socket frame holds: the page's own partials, drawn anew without a request.

Each function returns elements that htmx swaps by their id; "" when nothing that can
be seen changes. Synchronous: they read the database. A frame never carries an element
that a person may be typing into, nor an output that is still streaming.

1. A complete message appends an entry to the last turn, or replaces the element that
   streamed its text. 2. The events of a call replace parts of its card, never the card
   or its output element: open or closed, selected or scrolled, it stays as it is.
3. Whatever is not in the Trace (status, queue, processes) comes with `status_html`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

from django.template.loader import render_to_string

from sessions_app import runtime
from sessions_app.cards import cards_of
from sessions_app.chat_view import (
    CallViewer,
    model_name,
    retry_after,
    state_of,
    urls_of,
    usage,
)
from sessions_app.child_view import child_at
from sessions_app.frame import ACTIVE, active_in, count_waiting
from sessions_app.models import ApprovalRequest, Project, Session
from traces_app.call_view import call_key
from traces_app.omnimessage import payloads as p
from traces_app.rendering import Turn, entry_of, starts_turn, turn_title
from traces_app.stored_event import StoredEvent

FOLDER = "sessions_app/fragments"


def head_html(seq: int) -> str:
    """Return the mark that tells the page which event it has seen last."""
    return _render("head", seq=seq)


def event_html(session: Session, event: StoredEvent, *, item: str | None) -> str:
    """Return the fragments for one recorded event.

    `item` is the streaming element the event's text replaces, None if there is none.
    """
    if event.kind in _SPECIAL:
        return _SPECIAL[event.kind](session, event)
    if event.kind in _OF_A_CALL:
        return _call(session, event)
    entry = entry_of(event, agent=session.agent.name, author=author_of(session))
    if entry is None:
        return ""
    urls = urls_of(session)
    context: dict[str, Any] = {
        "entry": entry,
        "item": item,
        "chats_url": urls["chats"],
        "images_url": urls["images"],
    }
    if starts_turn(event.message) and isinstance(event.message.payload, p.Text):
        title = turn_title(event.message.payload.text)
        context["turn"] = Turn(seq=event.seq, title=title, entries=[entry])
        return _render("turn", **context)
    return _render("replace" if item else "append", **context)


def item_html(session: Session, item: str, kind: str) -> str:
    """Return the empty element of a text or thought that begins to stream."""
    return _render("item", item=item, kind=kind, author=session.agent.name)


def status_html(session: Session, pending: list[ApprovalRequest]) -> str:
    """Return everything about a session that stands outside the conversation."""
    slug = session.project.slug
    context = state_of(session, pending, is_fresh=True)
    context |= {
        "count": count_waiting(slug),
        "sessions": active_in(slug),
        "project": slug,
        "model_name": model_name(session),
        "trouble": runtime.trouble(session.pk),
        "cards": cards_of(pending, session),
    }
    return _render("status", **context)


def project_html(user: Any, project: Project) -> str:
    """Return what a project's open pages show of it; a list that is open asks anew."""
    slug = project.slug
    return _render(
        "project",
        project=slug,
        count=count_waiting(slug),
        sessions=active_in(slug),
        mark=_mark(project),
    )


def _mark(project: Project) -> str:
    """Return a word that is another one whenever the project's list is."""
    sessions = Session.objects.filter(
        project=project, is_archived=False, deleted_at=None, parent=None
    )
    active = sessions.filter(status__in=ACTIVE).order_by("id")
    latest = sessions.order_by("-last_activity_at").values_list("last_activity_at")
    facts = [
        count_waiting(project.slug),
        *active.values_list("id", "status", "title"),
        *latest[:1],
    ]
    return hashlib.sha256(repr(facts).encode()).hexdigest()[:16]


def child_html(session: Session, child_id: str) -> str:
    """Return what may be another of a subagent's card; "" when there is none."""
    child = child_at(session, child_id)
    return _render("child", child=child) if child else ""


def author_of(session: Session) -> str:
    """Return the name that messages to the agent are shown under."""
    if session.parent is not None:
        return session.parent.agent.name
    return session.created_by.get_username() if session.created_by else "You"


def _call(session: Session, event: StoredEvent) -> str:
    """Return the parts of a call's card that its newest event changes."""
    call_id = str(getattr(event.message.payload, "tool_call_id", ""))
    events = [e for e in runtime.call_events(session, call_id) if e.seq <= event.seq]
    if not any(e.kind == "tool_call" for e in events):
        return ""
    pending = runtime.pending_requests(session.pk)
    view = CallViewer(session, pending, is_fresh=True)(events)
    context = {
        "entry": view,
        "kind": event.kind,
        "trace_url": urls_of(session)["trace"],
        "images_url": urls_of(session)["images"],
        "cards": cards_of(pending, session),
    }
    if event.kind == "tool_call":
        return _render("append", **context)
    return _render("call", **context)


def _subagent(session: Session, event: StoredEvent) -> str:
    """Return a new subagent's card, put below the call that made it."""
    payload = event.message.payload
    assert isinstance(payload, p.Subagent)
    child = child_at(session, payload.session_id)
    if child is None or payload.tool_call_id is None:
        return ""
    key = call_key(payload.tool_call_id)
    return _render("new_child", child=child, call_key=key, is_new=True)


def _request_end(session: Session, event: StoredEvent) -> str:
    entry = entry_of(event, agent=session.agent.name, author=author_of(session))
    html = _render("append", entry=entry) if entry else ""
    context = {"retry": retry_after(event), "urls": urls_of(session)}
    return html + _render("provider_notice", **context)


def _request_begin(session: Session, event: StoredEvent) -> str:
    return _render("provider_notice", retry=None)


def _token_usage(session: Session, event: StoredEvent) -> str:
    payload = event.message.payload
    assert isinstance(payload, p.TokenUsage)
    if payload.tool_call_id is not None:
        return ""  # of a tool's own request; the next one of the session counts it in
    first = runtime.trace_events(session, limit=1)
    meta = first[0].message.payload if first else None
    window = meta.model_context_window if isinstance(meta, p.SessionMeta) else 0
    return _render("tokens", usage=usage(session, payload, window))


_OF_A_CALL = frozenset(
    {
        "tool_call",
        "approval_request",
        "approval_decision",
        "tool_started",
        "tool_call_output",
    }
)
_SPECIAL: dict[str, Callable[[Session, StoredEvent], str]] = {
    "request_begin": _request_begin,
    "request_end": _request_end,
    "subagent": _subagent,
    "token_usage": _token_usage,
}


def _render(name: str, **context: Any) -> str:
    return render_to_string(f"{FOLDER}/{name}.html", {"is_frame": True, **context})
