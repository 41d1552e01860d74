"""The list of a project's sessions: what waits, what runs, then the latest."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.http import urlencode

from sessions_app.models import ApprovalRequest, Session, SessionStatus
from sessions_app.outcomes import outcomes_of
from sessions_app.permissions import Action, may, project_for
from sessions_app.views.answers import page
from traces_app.arguments import read_arguments

PAGE = 50
ACTIVE_SHOWN = 100
YEAR_S = 365 * 24 * 3600
TABS = (
    ("", "All"),
    ("waiting", "Waiting"),
    ("running", "Running"),
    ("archived", "Archived"),
)


@page
def session_list(request: HttpRequest, project: str) -> HttpResponse:
    """Show the sessions, found by title and state, a page at a time."""
    row = project_for(request.user, Action.READ, project)
    query = request.GET.get("q", "").strip()
    tab = request.GET.get("status", "")
    sessions = _matching(row.pk, query, tab)
    after = request.GET.get("after", "")
    latest, older = _page(sessions, after) if tab in ("", "archived") else ([], "")
    is_first = not after and tab != "archived"
    active = _active(sessions, tab) if is_first else {}
    context = {
        "project": row,
        "query": query,
        "tab": tab,
        "tabs": [(key, name, urlencode(_given(query, key))) for key, name in TABS],
        "waiting": _with_asks(active.get("waiting", [])),
        "running": active.get("running", []),
        "latest": _with_outcomes(latest),
        "older": urlencode({**_given(query, tab), "after": older}) if older else "",
        "may_operate": may(request.user, Action.OPERATE, row),
    }
    response = render(request, "sessions_app/session_list.html", context)
    response.set_cookie("project", row.slug, max_age=YEAR_S, samesite="Lax")
    return response


def _given(query: str, tab: str) -> dict[str, str]:
    given = {"q": query, "status": tab}
    return {key: value for key, value in given.items() if value}


def _matching(project_id: int, query: str, tab: str) -> QuerySet[Session]:
    sessions = Session.objects.filter(
        project_id=project_id,
        parent=None,
        deleted_at=None,
        is_archived=tab == "archived",
    ).select_related("agent", "project")
    if query:
        sessions = sessions.filter(Q(title__icontains=query) | Q(pk=query))
    return sessions


def _active(sessions: QuerySet[Session], tab: str) -> dict[str, list[Session]]:
    """Return what waits (longest wait first) and what runs (latest first)."""
    found: dict[str, list[Session]] = {}
    if tab in ("", "waiting"):
        waiting = sessions.filter(status=SessionStatus.WAITING)
        found["waiting"] = list(waiting.order_by("last_activity_at")[:ACTIVE_SHOWN])
    if tab in ("", "running"):
        running = sessions.filter(status=SessionStatus.RUNNING)
        found["running"] = list(running.order_by("-last_activity_at")[:ACTIVE_SHOWN])
    return found


def _page(sessions: QuerySet[Session], after: str) -> tuple[list[Session], str]:
    """Return a page of what is idle, and where the next one begins ("" at the end)."""
    rows = sessions.filter(status=SessionStatus.IDLE)
    if place := _place(after):
        moment, key = place
        rows = rows.filter(
            Q(last_activity_at__lt=moment) | Q(last_activity_at=moment, pk__lt=key)
        )
    found = list(rows.order_by("-last_activity_at", "-id")[: PAGE + 1])
    if len(found) <= PAGE:
        return found, ""
    last = found[PAGE - 1]
    return found[:PAGE], f"{last.last_activity_at.isoformat()}~{last.pk}"


def _place(after: str) -> tuple[datetime, str] | None:
    moment, _, key = after.partition("~")
    try:
        return datetime.fromisoformat(moment), key
    except ValueError:
        return None


def _with_outcomes(sessions: Sequence[Session]) -> list[dict[str, Any]]:
    """Return sessions at rest with how they came to it."""
    outcomes = outcomes_of(session.trace_id for session in sessions)
    return [
        {"session": session, "outcome": outcomes[session.trace_id]}
        for session in sessions
    ]


def _with_asks(sessions: Sequence[Session]) -> list[dict[str, Any]]:
    """Return waiting sessions with the oldest call each asks about."""
    pending: dict[str, list[ApprovalRequest]] = {}
    rows = ApprovalRequest.objects.filter(decision=None).order_by("id")
    of_family = Q(session__in=sessions) | Q(session__parent__in=sessions)
    for row in rows.filter(of_family).select_related("session"):
        shown_at = row.session.parent_id or row.session_id
        pending.setdefault(shown_at, []).append(row)
    found = []
    for session in sessions:
        calls = pending.get(session.pk, [])
        first = calls[0] if calls else None
        line = read_arguments(first.name, first.arguments).summary if first else ""
        found.append(
            {"session": session, "first": first, "line": line, "more": len(calls) - 1}
        )
    return sorted(found, key=_wait_begin)


def _wait_begin(row: dict[str, Any]) -> datetime:
    first = row["first"]
    begin: datetime = first.requested_at if first else row["session"].last_activity_at
    return begin
