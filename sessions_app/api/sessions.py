"""Calls about sessions: make, list, read, change, talk to, stop, delete."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from asgiref.sync import sync_to_async
from django.db.models import Q
from django.http import HttpRequest
from ninja import Router, Status
from pydantic import Field

from sessions_app import runtime
from sessions_app.api.answers import caller, responses, session_json
from sessions_app.api.schemas import (
    CleanText,
    ProcessOut,
    SessionChange,
    SessionDetailOut,
    SessionIn,
    SessionPage,
    TaskIn,
)
from sessions_app.models import Project, Session
from sessions_app.permissions import (
    Action,
    User,
    mode_action,
    project_for,
    require,
    session_for,
)
from sessions_app.runtime import configs
from traces_app.spending import spending_of

router = Router(tags=["sessions"])
PAGE = 50


@router.post("projects/{project}/sessions", response=responses(SessionDetailOut, 201))
async def create_session(
    request: HttpRequest, project: str, body: SessionIn
) -> Status[Any]:
    """Make a session."""
    user = caller(request)
    row = await sync_to_async(_project_for_new)(user, project, body.approval_mode)
    session = await runtime.create_session(
        project=row, user=user, **body.model_dump(exclude_unset=True)
    )
    return Status(201, await _read(user, session.pk))


def _project_for_new(user: User, slug: str, mode: str | None) -> Project:
    project = project_for(user, Action.OPERATE, slug)
    default = configs.current(project)[0].approval.mode
    if mode_action(default, mode or default) is Action.LOOSEN_MODE:
        require(user, Action.LOOSEN_MODE, project)
    return project


@router.get("projects/{project}/sessions", response=responses(SessionPage))
async def list_sessions(
    request: HttpRequest,
    project: str,
    status: Literal["idle", "running", "waiting"] | None = None,
    q: CleanText = "",
    after: CleanText = "",
    limit: Annotated[int, Field(ge=1, le=200)] = PAGE,
) -> dict[str, Any]:
    """List the project's sessions, newest first; `q` looks into titles and ids."""
    return await sync_to_async(_page)(
        caller(request), project, status=status, q=q, after=after, limit=limit
    )


def _page(
    user: User, slug: str, *, status: str | None, q: str, after: str, limit: int
) -> dict[str, Any]:
    project = project_for(user, Action.READ, slug)
    rows = Session.objects.filter(project=project, deleted_at=None)
    rows = rows.select_related("project", "agent").order_by("-id")
    if status is not None:
        rows = rows.filter(status=status)
    if q:
        rows = rows.filter(Q(title__icontains=q) | Q(id__contains=q))
    if after:
        rows = rows.filter(id__lt=after)
    sessions = list(rows[: limit + 1])
    has_more = len(sessions) > limit
    sessions = sessions[:limit]
    return {
        "sessions": [session_json(session) for session in sessions],
        "next": sessions[-1].pk if has_more else None,
    }


@router.get("sessions/{session_id}", response=responses(SessionDetailOut))
async def read_session(request: HttpRequest, session_id: str) -> dict[str, Any]:
    """Read a session."""
    return await _read(caller(request), session_id)


async def _read(user: User, session_id: str) -> dict[str, Any]:
    session = await _session(user, Action.READ, session_id)
    spent = await sync_to_async(spending_of)(session_id)
    return {**session_json(session), "usage": spent.usage, "cost": spent.cost_usd}


@router.patch("sessions/{session_id}", response=responses(SessionDetailOut))
async def change_session(
    request: HttpRequest, session_id: str, body: SessionChange
) -> dict[str, Any]:
    """Change mode, title or whether it is archived; all of it or nothing."""
    user, asked = caller(request), body.model_fields_set
    session = await _session(user, Action.READ, session_id)
    needed = set()
    if "approval_mode" in asked:
        needed.add(mode_action(session.approval_mode, body.approval_mode))
    if asked - {"approval_mode"}:
        needed.add(Action.OPERATE)
    for action in sorted(needed):
        require(user, action, session.project)
    if "archived" in asked:
        await runtime.archive(session_id, body.archived, user=user)
    if "approval_mode" in asked:
        await runtime.set_mode(session_id, body.approval_mode, user=user)
    if "title" in asked:
        await runtime.rename(session_id, body.title, user=user)
    return await _read(user, session_id)


@router.delete("sessions/{session_id}", response=responses(None, 204))
async def delete_session(request: HttpRequest, session_id: str) -> Status[Any]:
    """Stop and delete a session; its record stays."""
    user = caller(request)
    await _session(user, Action.OPERATE, session_id)
    await runtime.delete_session(session_id, user=user)
    return Status(204, None)


@router.post("sessions/{session_id}/tasks", response=responses(SessionDetailOut, 202))
async def start_task(
    request: HttpRequest, session_id: str, body: TaskIn
) -> Status[Any]:
    """Send a message; 409 `busy` while a task runs or waits, unless queued."""
    user = caller(request)
    await _session(user, Action.OPERATE, session_id)
    await runtime.start_task(
        session_id, text=body.text, images=body.images, user=user, queue=body.queue
    )
    return Status(202, await _read(user, session_id))


@router.post(
    "sessions/{session_id}/interrupt", response=responses(SessionDetailOut, 202)
)
async def interrupt(request: HttpRequest, session_id: str) -> Status[Any]:
    """Stop what runs or waits; on an idle session nothing happens."""
    user = caller(request)
    await _session(user, Action.OPERATE, session_id)
    await runtime.interrupt(session_id, user=user)
    return Status(202, await _read(user, session_id))


@router.post("sessions/{session_id}/compact", response=responses(SessionDetailOut, 202))
async def compact(request: HttpRequest, session_id: str) -> Status[Any]:
    """Summarise the conversation into a fresh context; 409 while a task runs."""
    user = caller(request)
    await _session(user, Action.OPERATE, session_id)
    await runtime.compact(session_id, user=user)
    return Status(202, await _read(user, session_id))


@router.get("sessions/{session_id}/processes", response=responses(list[ProcessOut]))
async def list_processes(request: HttpRequest, session_id: str) -> list[dict[str, Any]]:
    """List the session's commands that run or can still be asked about."""
    await _session(caller(request), Action.READ, session_id)
    return await runtime.processes(session_id)


@router.delete(
    "sessions/{session_id}/processes/{process_id}", response=responses(None, 204)
)
async def kill_process(
    request: HttpRequest, session_id: str, process_id: str
) -> Status[Any]:
    """End a command."""
    user = caller(request)
    await _session(user, Action.OPERATE, session_id)
    await runtime.kill_process(session_id, process_id, user=user)
    return Status(204, None)


async def _session(user: User, action: Action, session_id: str) -> Session:
    return await sync_to_async(session_for)(user, action, session_id)
