"""Denies the calls that nobody decided in time, where a project sets a time.

The row decides, as everywhere: a compare-and-set that a person's answer may win. A
document that cannot be read sets no time, so a call then waits; it is never allowed.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from django.utils import timezone

from sessions_app.config.documents import DocumentError
from sessions_app.models import ApprovalRequest, Project
from sessions_app.runtime import configs

LOOK_S = 1.0


def expires_at(request: ApprovalRequest) -> datetime | None:
    """Return when the pending request will be denied; None: it waits for ever."""
    wait = _time_to_decide(request.session.project)
    return None if wait is None else request.requested_at + wait


def deny_overdue() -> set[str]:
    """Settle what is overdue in any session; return the sessions concerned."""
    now = timezone.now()
    pending = ApprovalRequest.objects.filter(decision=None)
    waiting = Project.objects.filter(pk__in=pending.values("session__project"))
    denied: set[str] = set()
    for project in waiting:
        wait = _time_to_decide(project)
        if wait is None:
            continue
        overdue = pending.filter(session__project=project, requested_at__lte=now - wait)
        for pk, session_id in overdue.values_list("pk", "session_id"):
            changed = pending.filter(pk=pk).update(
                decision="deny", source="expiry", via="auto", decided_at=now
            )
            if changed:
                denied.add(session_id)
    return denied


def _time_to_decide(project: Project) -> timedelta | None:
    try:
        config, _ = configs.current(project)
    except DocumentError:
        return None
    seconds = config.approval.expiry_s
    return None if seconds is None else timedelta(seconds=seconds)
