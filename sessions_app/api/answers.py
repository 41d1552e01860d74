"""What the calls have in common: the caller, declared answers, rows as JSON."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import User
from django.http import HttpRequest

from sessions_app.api.schemas import ErrorOut
from sessions_app.models import ApprovalRequest, Session

_ERRORS = frozenset({401, 403, 404, 409, 415, 422})


def responses(schema: Any, status: int = 200) -> dict[Any, Any]:
    """Return what a call may answer, for the OpenAPI document too."""
    return {status: schema, _ERRORS: ErrorOut}


def caller(request: HttpRequest) -> User:
    """Return the user `Credentials` found."""
    user: User = request.auth  # type: ignore[attr-defined]  # set by ninja
    return user


def session_json(session: Session) -> dict[str, Any]:
    """Return a session, its project and agent loaded, as the API tells it."""
    return {
        "id": session.pk,
        "project": session.project.slug,
        "agent": session.agent.name,
        "provider": session.provider,
        "model_id": session.model_id,
        "thinking_level": session.thinking_level,
        "workspace": session.workspace,
        "approval_mode": session.approval_mode,
        "status": session.status,
        "title": session.title,
        "created_at": session.created_at,
        "parent": session.parent_id,
        "archived": session.is_archived,
    }


def approval_json(row: ApprovalRequest) -> dict[str, Any]:
    """Return a request and its decision as the API tells them."""
    return {
        "session": row.session_id,
        "tool_call_id": row.tool_call_id,
        "attempt": row.attempt,
        "name": row.name,
        "arguments": row.arguments,
        "workdir": row.workdir,
        "permission": row.permission or None,
        "origin": row.origin,
        "arguments_sha256": row.arguments_sha256,
        "asked_because": row.asked_because,
        "requested_at": row.requested_at,
        "status": "pending" if row.decision is None else "decided",
        "decision": row.decision,
        "source": row.source or None,
        "via": row.via or None,
        "decided_by": row.decided_by,
        "decided_at": row.decided_at,
        "reason": row.reason or None,
    }
