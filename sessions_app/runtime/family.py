"""A session and its subagents as rows: whose calls wait, and what each status reads.

Synchronous; every function belongs into the transaction of whoever calls it. A
session reads `waiting` while a call of it or of a subagent waits for a person.
"""

from __future__ import annotations

from collections.abc import Callable

from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils import timezone

from sessions_app.models import (
    ApprovalRequest,
    QueuedMessage,
    Session,
    SessionStatus,
    SubagentSession,
    SubagentState,
)

IsRunning = Callable[[str], bool]  # whether a task of the session runs in this process


def pending_of(session_id: str) -> QuerySet[ApprovalRequest]:
    """Return what waits in the session and in its subagents, oldest first."""
    of_family = Q(session_id=session_id) | Q(session__parent_id=session_id)
    return ApprovalRequest.objects.filter(of_family, decision=None).order_by("id")


def children_of(session_id: str) -> QuerySet[Session]:
    """Return the session's subagents, in the order they were made."""
    children = Session.objects.filter(parent_id=session_id, deleted_at=None)
    return children.select_related("agent", "subagent").order_by("subagent__number")


def mode_source(session: Session) -> Session:
    """Return the session whose approval mode counts: a subagent has its parent's."""
    return session.parent or session


def origin_of(session: Session) -> list[str]:
    """Return what a request of the session carries as its `origin`."""
    return [session.pk] if session.parent_id else []


def show_waiting(session: Session) -> None:
    """Let the session, and the one it works for, read `waiting`."""
    rows = Session.objects.filter(pk__in=[session.pk, session.parent_id])
    rows.update(status=SessionStatus.WAITING)


def show_answered(session_id: str, *, is_running: IsRunning) -> None:
    """Let the session and its parent go on where no call waits any more."""
    parent = Session.objects.filter(pk=session_id).values_list("parent_id", flat=True)
    for key in (session_id, parent.first()):
        if key is not None and not pending_of(key).exists():
            # A message that is queued while nothing runs is about to start a task.
            goes_on = is_running(key) or _has_queued(key)
            status = SessionStatus.RUNNING if goes_on else SessionStatus.IDLE
            rows = Session.objects.filter(pk=key, status=SessionStatus.WAITING)
            rows.update(status=status)


@transaction.atomic
def show_decided(session_id: str, *, is_running: IsRunning) -> None:
    """Do the same in a transaction of its own, behind a recorded decision."""
    show_answered(session_id, is_running=is_running)


def show_ended(session_id: str, *, is_running: IsRunning) -> None:
    """Let a session whose task has ended read `idle`, or `waiting` for a call."""
    is_waiting = pending_of(session_id).exists()
    status = SessionStatus.WAITING if is_waiting else SessionStatus.IDLE
    rows = Session.objects.filter(pk=session_id)
    rows.update(status=status, last_activity_at=timezone.now())
    show_answered(session_id, is_running=is_running)


def show_recovered(session: Session) -> None:
    """Do the same for one whose process is gone: nothing of it runs."""
    for key in filter(None, (session.pk, session.parent_id)):
        is_waiting = pending_of(key).exists()
        rows = Session.objects.filter(pk=key)
        if is_waiting:
            rows.update(status=SessionStatus.WAITING)
        elif key == session.pk:
            rows.update(status=SessionStatus.IDLE)
        else:
            rows = rows.filter(status=SessionStatus.WAITING)
            rows.update(status=SessionStatus.IDLE)


def _has_queued(session_id: str) -> bool:
    return QueuedMessage.objects.filter(session_id=session_id).exists()


def add_child(child: Session, *, tool_call_id: str) -> None:
    """Number a new subagent among those of its parent."""
    number = SubagentSession.objects.filter(session__parent=child.parent).count() + 1
    SubagentSession.objects.create(
        session=child, number=number, tool_call_id=tool_call_id
    )


def set_state(session_id: str, state: SubagentState) -> None:
    """Note how the parent stands to a subagent now; times follow from it."""
    rows = SubagentSession.objects.filter(pk=session_id)
    if state is SubagentState.WORKING:
        rows.update(state=state, task_began_at=timezone.now(), task_ended_at=None)
        return
    rows.filter(task_ended_at=None).update(task_ended_at=timezone.now())
    rows.update(state=state)


def lose_children(owner_id: str) -> None:
    """Note that a dead process took the subagents with it that were at work."""
    rows = SubagentSession.objects.filter(
        session__owner_id=owner_id, state=SubagentState.WORKING
    )
    rows.update(state=SubagentState.LOST, task_ended_at=timezone.now())


def known_children(session_id: str) -> tuple[list[str], dict[str, str]]:
    """Return the subagents that can be given a task, and why others cannot."""
    rows = SubagentSession.objects.filter(session__parent_id=session_id)
    states = dict(rows.values_list("session_id", "state"))
    idle = [key for key, state in states.items() if state == SubagentState.IDLE]
    gone = {
        key: state
        for key, state in states.items()
        if state in (SubagentState.EVICTED, SubagentState.LOST)
    }
    return idle, gone
