"""A subagent as its parent's page shows it: a card at the call that made it.

Drawn from the child's row and the end of its own record; its whole conversation is one
link away. Its calls that wait have cards of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from django.db.models import QuerySet
from django.urls import reverse

from sessions_app import runtime
from sessions_app.models import ApprovalRequest, Session, SessionStatus
from traces_app.arguments import read_arguments
from traces_app.figures import elapsed
from traces_app.omnimessage import payloads as p
from traces_app.prose import SafeMarkup, to_html
from traces_app.rendering import turn_title
from traces_app.stored_event import StoredEvent

STEPS = 12  # of its conversation, the newest, in the card
_TOLD = ("text", "tool_call", "abort")


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One thing a subagent said or did."""

    seq: int
    icon: str
    line: str  # in one line, without a mark-up
    name: str = ""  # of the tool it called
    html: SafeMarkup = SafeMarkup()


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildView:
    """One subagent; `key` makes the ids of its elements unique on a page."""

    template: ClassVar[str] = "sessions_app/partials/child.html"
    key: str
    session_id: str
    name: str
    title: str
    url: str
    stop_url: str
    status: str
    began_at: datetime
    ended_at: datetime | None
    waiting: int  # calls
    steps: Sequence[Step]

    @property
    def is_active(self) -> bool:
        """Return whether it works, or waits for a person."""
        return self.status != SessionStatus.IDLE

    @property
    def took(self) -> str:
        """Return how long its last task took, "" while it runs."""
        if self.ended_at is None:
            return ""
        return elapsed((self.ended_at - self.began_at).total_seconds())

    @property
    def doing(self) -> str:
        """Return the last thing it did, in one line."""
        return self.steps[-1].line if self.steps else self.title


def child_name(child: Session) -> str:
    """Return a subagent as people tell it from its siblings: `reviewer #2`."""
    if hasattr(child, "subagent"):
        return f"{child.agent.name} #{child.subagent.number}"
    elder = Session.objects.filter(parent_id=child.parent_id, deleted_at=None)
    number = elder.filter(created_at__lte=child.created_at).count()
    return f"{child.agent.name} #{number}"


def children_of(session: Session) -> list[ChildView]:
    """Return the session's subagents, the oldest first, without their steps."""
    return [_view(child, steps=()) for child in _rows(session)]


def child_at(session: Session, session_id: str) -> ChildView | None:
    """Return one subagent with the end of its conversation."""
    child = _rows(session).filter(pk=session_id).first()
    return _view(child, steps=_steps(child)) if child else None


def _rows(session: Session) -> QuerySet[Session]:
    children = Session.objects.filter(parent=session, deleted_at=None)
    children = children.select_related("agent", "project", "subagent")
    return children.order_by("created_at", "id")


def _view(child: Session, *, steps: Sequence[Step]) -> ChildView:
    place = [child.project.slug, child.pk]
    row = child.subagent if hasattr(child, "subagent") else None
    pending = ApprovalRequest.objects.filter(session=child, decision=None)
    return ChildView(
        key=child.pk[-8:],
        session_id=child.pk,
        name=child_name(child),
        title=child.title,
        url=reverse("chat", args=place),
        stop_url=reverse("stop", args=place),
        status=child.status,
        began_at=row.task_began_at if row else child.created_at,
        ended_at=row.task_ended_at if row else None,
        waiting=pending.count() if child.status == SessionStatus.WAITING else 0,
        steps=steps,
    )


def _steps(child: Session) -> list[Step]:
    events = runtime.newest_events(child, kinds=_TOLD)
    found = [step for step in map(_step, events) if step is not None]
    return found[-STEPS:]


def _step(event: StoredEvent) -> Step | None:
    match event.message.payload:
        case p.Text(role="assistant", synthetic=None, text=text):
            line = turn_title(text)
            return Step(seq=event.seq, icon="think", line=line, html=to_html(text))
        case p.Text(role="assistant", synthetic="notice", text=text):
            return Step(seq=event.seq, icon="warning", line=text)
        case p.ToolCall(name=name, arguments=arguments):
            line = read_arguments(name, arguments).summary
            return Step(seq=event.seq, icon="terminal", name=name, line=line)
        case p.Abort(reason=reason):
            return Step(seq=event.seq, icon="stop", line=reason)
    return None
