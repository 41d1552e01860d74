"""Making and changing session rows. Synchronous; each function is one transaction."""

from __future__ import annotations

import os
import secrets
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from sessions_app.config.project_config import ModelEntry, ProjectConfig
from sessions_app.environment.images import Image
from sessions_app.models import (
    Agent,
    ApprovalMode,
    ApprovalRequest,
    Project,
    QueuedMessage,
    Session,
)
from sessions_app.runtime import configs, family
from sessions_app.runtime.images import give, take_back
from sessions_app.runtime.message_queue import remove
from sessions_app.runtime.refusal import conflict, invalid, not_found
from traces_app import writer
from traces_app.models import Trace
from traces_app.omnimessage import OmniMessage, event
from traces_app.omnimessage.payloads import ConfigInForce, SessionMeta

TITLE_LENGTH = 60
LEVELS = ("none", "low", "medium", "high", "xhigh", "max")
MAX_TEXT = 1024 * 1024  # characters of one message


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What a person asks for; None means the project's default."""

    agent: str | None = None
    model: str | None = None  # PROVIDER/ID
    thinking_level: str | None = None
    workspace: str | None = None
    approval_mode: str | None = None
    title: str = ""
    any_workspace: bool = False  # a terminal's caller may use any of his folders


def create(project: Project, user: Any, wish: Wish) -> Session:
    """Make a session with its Trace; raises `Refusal` naming the field."""
    config, project_version = configs.current(project)
    agent = find_agent(project, config, wish.agent)
    agent_config, agent_version = configs.current_agent(agent)
    model = find_model(config, wish.model)
    level = wish.thinking_level or agent_config.model.thinking_level
    if level is not None and level not in LEVELS:
        raise invalid(
            "thinking_level", f"{level!r} is no thinking level: {', '.join(LEVELS)}."
        )
    mode = wish.approval_mode or config.approval.mode
    if mode not in ApprovalMode.values:
        known = ", ".join(ApprovalMode.values)
        raise invalid("approval_mode", f"{mode!r} is no approval mode: {known}.")
    session_id = new_session_id()
    workspace = _workspace(project, config, session_id, wish)
    username = user.get_username() if user and user.is_authenticated else ""
    version = {"project": project_version, "agent": agent_version}
    with transaction.atomic():
        trace = writer.create_trace(
            session_id=session_id,
            project=project.slug,
            owner=username,
            title=wish.title.strip(),
        )
        session = Session.objects.create(
            id=session_id,
            project=project,
            agent=agent,
            trace=trace,
            provider=model.provider,
            model_id=model.model_id,
            thinking_level=level,
            workspace=str(workspace),
            approval_mode=mode,
            mode_set_by=username,
            mode_set_at=timezone.now(),
            title=wish.title.strip()[:200],
            created_by=user if username else None,
        )
        writer.append(
            trace.pk, opening(session, model, agent_config.system_prompt, version)
        )
    return session


def opening(
    session: Session, model: ModelEntry, system_prompt: str, version: dict[str, int]
) -> list[OmniMessage]:
    """Return the messages every Trace begins with."""
    meta = SessionMeta(
        session_id=session.pk,
        provider=model.provider,
        model_id=model.model_id,
        model_context_window=model.context_window,
        system_prompt=system_prompt,
        workspace=session.workspace,
        source="subagent" if session.parent_id else None,
    )
    return [OmniMessage(payload=meta), event(ConfigInForce(version=version))]


def new_session_id() -> str:
    """Return `session-YYYY-MM-DD-HH-MM-SS-<8 hex>`."""
    return f"session-{timezone.now():%Y-%m-%d-%H-%M-%S}-{secrets.token_hex(4)}"


def find_agent(project: Project, config: ProjectConfig, name: str | None) -> Agent:
    """Return the agent of that name, the default one for None; raises `Refusal`."""
    name = name or config.default_agent
    agent = Agent.objects.filter(project=project, name=name).first()
    if agent is None:
        known = ", ".join(project.agents.values_list("name", flat=True))
        raise invalid("agent", f"The project has no agent {name!r}. It has: {known}.")
    return agent


def find_model(config: ProjectConfig, name: str | None) -> ModelEntry:
    """Return the model `PROVIDER/ID`, the default one for None; raises `Refusal`."""
    name = name or config.default_model
    for entry in config.models:
        if f"{entry.provider}/{entry.model_id}" == name:
            return entry
    known = ", ".join(f"{m.provider}/{m.model_id}" for m in config.models)
    raise invalid("model", f"The project has no model {name!r}. It has: {known}.")


def _workspace(
    project: Project, config: ProjectConfig, session_id: str, wish: Wish
) -> Path:
    if not wish.workspace:
        folder: Path = settings.WORKSPACES_DIR / project.slug / session_id
        folder.mkdir(parents=True, mode=0o700)
        return folder
    if "\x00" in wish.workspace:
        raise invalid("workspace", "A path cannot hold a NUL character.")
    try:
        path = Path(os.path.realpath(Path(wish.workspace).expanduser()))
        is_folder = path.is_dir()
    except (OSError, RuntimeError) as error:  # too long a name; `~` of no account
        raise invalid("workspace", f"The path is of no use: {error}.") from error
    roots = [Path(os.path.realpath(root)) for root in config.workspace_roots]
    roots.append(settings.WORKSPACES_DIR / project.slug)
    if not wish.any_workspace and not any(path.is_relative_to(r) for r in roots):
        allowed = ", ".join(str(root) for root in roots)
        raise invalid(
            "workspace", f"{path} is not below an allowed folder. Allowed: {allowed}."
        )
    if path.is_relative_to(settings.DATA_DIR):
        raise invalid("workspace", "The server's data folder cannot be a workspace.")
    if not is_folder:
        raise invalid("workspace", f"{path} is not a folder on this machine.")
    return path


def enqueue(
    session_id: str,
    *,
    text: str,
    user: Any,
    queue: bool,
    is_busy: bool,
    images: Sequence[Image] = (),
    attached: Collection[int] = (),
) -> bool:
    """Store a message as a queued row; True when it starts a task.

    `is_busy` is what the live session says: a row that still reads running although
    nothing runs is taken over. Raises `Refusal` 409 `busy` when a task runs and the
    caller does not queue. `attached` are ids of images in the composer.
    """
    _check_message(text, has_images=bool(images or attached))
    with transaction.atomic():
        rows = Session.objects.select_for_update().filter(pk=session_id)
        session = rows.filter(deleted_at=None).first()
        if session is None:
            raise not_found(f"The session {session_id}")
        if session.is_archived:
            raise conflict("archived", "The session is archived: unarchive it first.")
        pending = ApprovalRequest.objects.filter(session=session, decision=None)
        is_waiting = session.status == "waiting"
        runs = session.status != "idle" and is_busy or is_waiting and pending.exists()
        if runs and not queue:
            raise conflict(
                "busy",
                "A task of this session is running or waits for a decision. "
                "Queue the message, or stop the task first.",
            )
        message = QueuedMessage.objects.create(
            session=session, text=text, created_by=user
        )
        count = give(message, images=images, attached=attached)
        _check_message(text, has_images=count > 0)
        title = session.title or first_line(text)
        changes: dict[str, Any] = {"last_activity_at": timezone.now(), "title": title}
        if not runs:
            # A subagent's call may go on waiting while the task runs.
            has_cards = is_waiting and family.pending_of(session_id).exists()
            changes |= {"status": "waiting" if has_cards else "running", "draft": ""}
        rows.update(**changes)
        if title != session.title:
            Trace.objects.filter(pk=session.trace_id).update(title=title)
    return not runs


def _check_message(text: str, *, has_images: bool) -> None:
    if not text.strip() and not has_images:
        raise invalid("text", "The message is empty: write what the agent should do.")
    if len(text) > MAX_TEXT:
        raise invalid(
            "text",
            f"The message has {len(text):,} characters; {MAX_TEXT:,} are allowed. "
            "Put the text into a file of the workspace and name it instead.",
        )


def first_line(text: str) -> str:
    """Return a message's title: its first line, 60 characters."""
    lines = text.strip().splitlines()
    return lines[0].strip()[:TITLE_LENGTH] if lines else ""


def recall(session_id: str, queued_id: int) -> str:
    """Take a queued message back, its images into the composer; return its text.

    409 once it was delivered.
    """
    row = QueuedMessage.objects.filter(session_id=session_id, pk=queued_id).first()
    with transaction.atomic():
        if row is not None:
            take_back([row])
        if row is None or not remove(row):
            raise conflict("delivered", "The message was delivered already.")
    return row.text
