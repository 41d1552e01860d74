"""The frame around every page: theme, rail, project, and what waits or runs now."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from django.http import HttpRequest

from sessions_app.models import ApprovalRequest, Session, SessionStatus
from sessions_app.permissions import projects_of

THEMES = ("", "light", "dark")  # "": the system's
NOW_SHOWN = 8
ACTIVE = (SessionStatus.RUNNING, SessionStatus.WAITING)

_SECTIONS = {
    "approvals": "approvals",
    "trace": "traces",
    "trace_list": "traces",
    "settings": "settings",
}


def context(request: HttpRequest) -> dict[str, object]:
    """Offer `frame` to every template rendered with a request."""
    return {"frame": Frame(request)}


@dataclass
class Frame:
    """Reads what a template asks for, and no more; templates of errors ask little."""

    request: HttpRequest

    @cached_property
    def theme(self) -> str:
        """Return the chosen theme, "" for the system's."""
        theme = self.request.COOKIES.get("theme", "")
        return theme if theme in THEMES else ""

    @property
    def next_theme(self) -> str:
        """Return the theme a press on the button leads to."""
        return THEMES[(THEMES.index(self.theme) + 1) % len(THEMES)]

    @property
    def is_narrow(self) -> bool:
        """Return whether the rail is collapsed."""
        return self.request.COOKIES.get("rail") == "narrow"

    @cached_property
    def projects(self) -> list[str]:
        """Return the slugs of the projects the person sees."""
        user: Any = getattr(self.request, "user", None)
        return list(projects_of(user).values_list("slug", flat=True)) if user else []

    @cached_property
    def project(self) -> str:
        """Return the slug of the page's project, "" outside of one."""
        match = self.request.resolver_match
        slug = str(match.kwargs.get("project", "")) if match else ""
        return slug if slug in self.projects else ""

    @property
    def section(self) -> str:
        """Return which entry of the rail the page belongs to."""
        match = self.request.resolver_match
        name = match.url_name if match else None
        return _SECTIONS.get(name or "", "sessions")

    @cached_property
    def waiting(self) -> int:
        """Return how many calls wait in the project."""
        return count_waiting(self.project)

    @cached_property
    def now(self) -> Sequence[Session]:
        """Return sessions that wait, then those that run."""
        return active_in(self.project)


def count_waiting(project: str) -> int:
    """Return how many calls wait in a project's sessions."""
    return ApprovalRequest.objects.filter(
        decision=None, session__project__slug=project, session__deleted_at=None
    ).count()


def active_in(project: str) -> list[Session]:
    """Return a project's sessions that wait, then those that run."""
    active = Session.objects.filter(
        project__slug=project,
        status__in=ACTIVE,
        deleted_at=None,
        parent=None,
        is_archived=False,
    )
    # "waiting" sorts behind "running".
    return list(active.order_by("-status", "-last_activity_at")[:NOW_SHOWN])
