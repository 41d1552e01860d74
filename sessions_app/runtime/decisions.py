"""What people change about approvals: a decision, the mode. Synchronous, row first.

Every function here runs in one transaction and may be called from any process; the
session's owner is woken afterwards and writes what follows.
"""

from __future__ import annotations

from typing import Any

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from sessions_app.models import ApprovalMode, ApprovalRequest, Session
from sessions_app.runtime import family, policy
from sessions_app.runtime.refusal import conflict, invalid, not_found


def decide(
    session_id: str,
    tool_call_id: str,
    *,
    decision: str,
    username: str | None,
    via: str,
    reason: str = "",
    arguments_sha256: str | None = None,
    attempt: int | None = None,
) -> ApprovalRequest:
    """Store a person's decision: the first answer wins, atomically.

    Returns the stored row; raises `Refusal` 404 (unknown), 409 `already_decided`
    (the opposite answer came first) or 409 `arguments_changed` (another digest).
    """
    if decision not in ("allow", "deny"):
        raise invalid("decision", f"{decision!r} is no decision: send allow or deny.")
    requests = ApprovalRequest.objects.filter(
        session_id=session_id, tool_call_id=tool_call_id
    )
    if attempt is not None:
        requests = requests.filter(attempt=attempt)
    # The mode that is in force at the decision comes along for its event.
    requests = requests.select_related("session__parent")
    row = requests.order_by("-attempt").first()
    if row is None:
        raise not_found(f"A request for the call {tool_call_id}")
    if arguments_sha256 and arguments_sha256 != row.arguments_sha256:
        raise conflict(
            "arguments_changed",
            "The call is not the one you were shown; nothing was decided. "
            "Read it again, then decide.",
            **stored(row),
        )
    answer = {
        "decision": decision,
        "source": "user",
        "via": via,
        "decided_by": username,
        "decided_at": timezone.now(),
        "reason": reason.strip(),
        "shown_sha256": arguments_sha256 or "",
    }
    if ApprovalRequest.objects.filter(pk=row.pk, decision=None).update(**answer):
        for name, value in answer.items():
            setattr(row, name, value)
        return row
    row = requests.get(pk=row.pk)  # refreshing would drop the session it came with
    if row.decision != decision:
        who = row.decided_by or row.source
        at = f" at {row.decided_at:%H:%M:%S} UTC" if row.decided_at else ""
        raise conflict(
            "already_decided",
            f"This call is decided already: {row.decision} by {who}{at}.",
            **stored(row),
        )
    return row


def stored(row: ApprovalRequest) -> dict[str, Any]:
    """Return what a 409 tells of the row as it stands."""
    return {
        "tool_call_id": row.tool_call_id,
        "attempt": row.attempt,
        "decision": row.decision,
        "source": row.source,
        "decided_by": row.decided_by,
        "decided_at": row.decided_at.isoformat() if row.decided_at else None,
        "arguments_sha256": row.arguments_sha256,
    }


def mode_rows(session_id: str, mode: str, username: str | None) -> None:
    """Set the mode, of subagents too, and re-decide what is pending under it."""
    now = timezone.now()
    Session.objects.filter(Q(pk=session_id) | Q(parent_id=session_id)).update(
        approval_mode=mode, mode_set_by=username or "", mode_set_at=now
    )
    pending = family.pending_of(session_id)
    for row in pending.select_related("session__project"):
        outside = policy.outside_host(row.session, row.name, row.arguments)
        answer = policy.verdict(mode, row.permission or None, outside=outside)
        if answer != "ask":
            pending.filter(pk=row.pk).update(
                decision=answer, source="mode", via="auto", decided_at=now
            )


def check_mode(mode: str) -> None:
    """Refuse what is no approval mode, naming the four."""
    if mode not in ApprovalMode.values:
        known = ", ".join(ApprovalMode.values)
        raise invalid("approval_mode", f"{mode!r} is no approval mode: {known}.")


@transaction.atomic
def close_pending(session_id: str, username: str | None) -> None:
    """Deny what is pending because the session is stopped or deleted."""
    ApprovalRequest.objects.filter(session_id=session_id, decision=None).update(
        decision="deny",
        source="interrupt",
        via="auto",
        decided_by=username,
        decided_at=timezone.now(),
    )
