"""Calls about approvals: what waits, and the answer to it."""

from __future__ import annotations

from typing import Any, Literal

from asgiref.sync import sync_to_async
from django.db.models import Q
from django.http import HttpRequest
from ninja import Router

from sessions_app import runtime
from sessions_app.api.answers import approval_json, caller, responses
from sessions_app.api.schemas import ApprovalOut, DecisionIn
from sessions_app.models import ApprovalRequest
from sessions_app.permissions import Action, User, projects_of, session_for

router = Router(tags=["approvals"])
Status = Literal["pending", "decided"] | None
# Pending ones are always complete; of decided ones the newest.
MOST_DECIDED = 1000


@router.get("approvals", response=responses(list[ApprovalOut]))
async def list_all_approvals(
    request: HttpRequest, status: Status = None
) -> list[dict[str, Any]]:
    """List the requests of every session the caller may see, oldest first."""
    return await sync_to_async(_all)(caller(request), status)


def _all(user: User, status: Status) -> list[dict[str, Any]]:
    return _listed(
        Q(session__project__in=projects_of(user), session__deleted_at=None), status
    )


@router.get("sessions/{session_id}/approvals", response=responses(list[ApprovalOut]))
async def list_approvals(
    request: HttpRequest, session_id: str, status: Status = None
) -> list[dict[str, Any]]:
    """List the requests of the session and of its subagents, oldest first."""
    return await sync_to_async(_of_family)(caller(request), session_id, status)


def _of_family(user: User, session_id: str, status: Status) -> list[dict[str, Any]]:
    session_for(user, Action.READ, session_id)
    return _listed(Q(session=session_id) | Q(session__parent=session_id), status)


def _listed(which: Q, status: Status) -> list[dict[str, Any]]:
    requests = ApprovalRequest.objects.filter(which)
    rows: list[ApprovalRequest] = []
    if status != "decided":
        rows += requests.filter(decision=None)
    if status != "pending":
        decided = requests.filter(decision__isnull=False)
        rows += decided.order_by("-id")[:MOST_DECIDED]
    return [approval_json(row) for row in sorted(rows, key=lambda row: row.pk)]


@router.post(
    "sessions/{session_id}/approvals/{path:tool_call_id}",
    response=responses(ApprovalOut),
)
async def decide(
    request: HttpRequest, session_id: str, tool_call_id: str, body: DecisionIn
) -> dict[str, Any]:
    """Decide a call; the first answer wins, the same one again is fine."""
    user = caller(request)
    await sync_to_async(session_for)(user, Action.DECIDE, session_id)
    row = await runtime.decide(
        session_id,
        tool_call_id,
        decision=body.decision,
        user=user,
        via="api",
        reason=body.reason,
        arguments_sha256=body.arguments_sha256,
    )
    return approval_json(row)
