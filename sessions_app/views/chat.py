"""The chat page: the end of a session, live; what came before it, page by page."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from sessions_app import runtime
from sessions_app.cards import cards_of
from sessions_app.chat_view import (
    CallViewer,
    model_name,
    retry_of,
    state_of,
    urls_of,
    usage_of,
)
from sessions_app.examples import EXAMPLES
from sessions_app.fragments import author_of
from sessions_app.models import ApprovalMode, Session
from sessions_app.permissions import Action, may
from sessions_app.views.answers import is_htmx, page, session_in
from traces_app.call_view import CallView
from traces_app.rendering import Streaming, Turn, conversation

REQUESTS = 30  # to the model, with their calls: what a page shows at once
OPEN_TURNS = 5  # the last ones, whose calls are unfolded
STAYS_OPEN = ("waiting", "running", "denied")
HINT = "Message"
DEMO_HINT = "Message, or $ and a command"


@page
def chat(request: HttpRequest, project: str, session: str) -> HttpResponse:
    """Show a session: what was said and done, and what waits."""
    row = session_in(request.user, Action.READ, project, session)
    before = request.GET.get("before", "")
    if before.isdecimal() and int(before[:15]) > 1:
        return _earlier(request, row, int(before[:15]))
    start = runtime.window_start(row, requests=REQUESTS)
    snapshot = runtime.snapshot(row.pk, after=start - 1)
    viewer = CallViewer(row, snapshot.pending, bindings=snapshot.bindings)
    turns = conversation(
        snapshot.events, agent=row.agent.name, author=author_of(row), view=viewer
    )
    fold_old(turns)
    turns[-1].streaming = [
        Streaming(
            item=item.item,
            kind=item.kind,
            text=item.text,
            offset=item.start + len(item.text),
        )
        for item in snapshot.items
    ]
    first = runtime.trace_events(row, limit=1)
    context = state_of(snapshot.session, snapshot.pending) | _place(row, start, turns)
    context |= {
        "seq": snapshot.seq,
        "cards": cards_of(snapshot.pending, row),
        "usage": usage_of(row, [*first, *snapshot.events]),
        "retry": retry_of(snapshot.events),
        "trouble": runtime.trouble(row.pk),
        **_rights(request, row),
    }
    return render(request, "sessions_app/chat.html", context)


def _earlier(request: HttpRequest, session: Session, before: int) -> HttpResponse:
    """Show a page of the past: put above what is open, or as a page of its own."""
    start = runtime.window_start(session, requests=REQUESTS, before=before)
    events = runtime.trace_events(
        session, after=start - 1, limit=before - start, is_light=True
    )
    turns = conversation(
        events,
        agent=session.agent.name,
        author=author_of(session),
        view=CallViewer(session, []),
    )
    fold_old(turns, keep=0)
    context = _place(session, start, turns)
    if is_htmx(request):
        return render(request, "sessions_app/partials/earlier.html", context)
    context |= {"session": session, "urls": urls_of(session)}
    return render(request, "sessions_app/earlier.html", context)


def _place(session: Session, start: int, turns: list[Turn]) -> dict[str, Any]:
    """Return what draws a run of turns, and where the one before it ends."""
    return {
        "turns": turns,
        "start": start if start > 1 else 0,
        "author": session.agent.name,
        "trace_url": urls_of(session)["trace"],
        "images_url": urls_of(session)["images"],
        "chat_url": urls_of(session)["chat"],
        "chats_url": urls_of(session)["chats"],
        "model_name": model_name(session),
    }


def _rights(request: HttpRequest, session: Session) -> dict[str, Any]:
    """Return what this person may do here, and what the page offers for it."""
    may_operate = may(request.user, Action.OPERATE, session.project)
    is_demo = session.provider == "demo"
    return {
        "may_operate": may_operate,
        "may_decide": may(request.user, Action.DECIDE, session.project),
        "may_attach": may_operate and runtime.sees_images(session),
        "image_limits": runtime.IMAGE_LIMITS,
        "modes": ApprovalMode.values,
        "placeholder": DEMO_HINT if is_demo else HINT,
        "examples": EXAMPLES if is_demo and may_operate else (),
    }


def fold_old(turns: list[Turn], *, keep: int = OPEN_TURNS) -> None:
    """Fold the calls of all but the last turns; what was not done stays in sight."""
    for turn in turns[: max(0, len(turns) - keep)]:
        turn.entries = [
            replace(entry, is_open=entry.state in STAYS_OPEN)
            if isinstance(entry, CallView)
            else entry
            for entry in turn.entries
        ]
