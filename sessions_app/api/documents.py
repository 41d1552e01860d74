"""Calls about the documents of projects and agents."""

from __future__ import annotations

from typing import Any

from asgiref.sync import sync_to_async
from django.http import Http404, HttpRequest
from ninja import Router

from sessions_app.api.answers import caller, responses
from sessions_app.api.schemas import ConfigIn, ConfigOut
from sessions_app.models import Agent, Project
from sessions_app.permissions import Action, User, project_for
from sessions_app.runtime import configs

router = Router(tags=["config"])


@router.get("projects/{project}/config", response=responses(ConfigOut))
async def read_project_config(request: HttpRequest, project: str) -> dict[str, Any]:
    """Read the project document in force."""
    return await sync_to_async(_read)(caller(request), project, None)


@router.put("projects/{project}/config", response=responses(ConfigOut))
async def save_project_config(
    request: HttpRequest, project: str, body: ConfigIn
) -> dict[str, Any]:
    """Save a new version; 409 when somebody saved since `base_version`."""
    return await sync_to_async(_save)(caller(request), project, None, body)


@router.get("projects/{project}/agents/{agent}/config", response=responses(ConfigOut))
async def read_agent_config(
    request: HttpRequest, project: str, agent: str
) -> dict[str, Any]:
    """Read the agent document in force."""
    return await sync_to_async(_read)(caller(request), project, agent)


@router.put("projects/{project}/agents/{agent}/config", response=responses(ConfigOut))
async def save_agent_config(
    request: HttpRequest, project: str, agent: str, body: ConfigIn
) -> dict[str, Any]:
    """Save a new version; 409 when somebody saved since `base_version`."""
    return await sync_to_async(_save)(caller(request), project, agent, body)


def _target(user: User, action: Action, slug: str, name: str | None) -> Project | Agent:
    project = project_for(user, action, slug)
    if name is None:
        return project
    agent = project.agents.filter(name=name).first()
    if agent is None:
        raise Http404
    return agent


def _read(user: User, slug: str, name: str | None) -> dict[str, Any]:
    return _document(_target(user, Action.READ, slug, name))


def _save(user: User, slug: str, name: str | None, body: ConfigIn) -> dict[str, Any]:
    target = _target(user, Action.EDIT_CONFIG, slug, name)
    configs.save(
        target,
        body.yaml,
        base_version=body.base_version,
        reason=body.reason,
        user=None if user.is_anonymous else user,
    )
    return _document(target)


def _document(target: Project | Agent) -> dict[str, Any]:
    text, number = configs.document_text(target)
    version = configs.newest_version(target)
    author = version.author if version else None
    return {
        "version": number,
        "yaml": text,
        "author": author.get_username() if author else None,
        "reason": version.reason if version else "",
        "created_at": version.created_at if version else None,
    }
