"""The documents of projects and agents: which version is in force, and new ones.

A document is never changed: each save is a new row, made only when the text is sound
and the saver had seen the newest version. A project or agent without a version has
the default document, as version 0.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import lru_cache

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import QuerySet
from django.utils.text import Truncator

from sessions_app.config.documents import DocumentError, default_document
from sessions_app.config.project_config import AgentConfig, ProjectConfig
from sessions_app.config.schema_check import did_you_mean
from sessions_app.config.yaml_positions import parse
from sessions_app.environment.registry import implemented_tools
from sessions_app.models import Agent, ConfigVersion, Project

DEFAULT_PROJECT = "default"
_REASON_LENGTH = 500


class StaleBase(Exception):
    """Somebody saved since the saver looked; `newest` is what they saved."""

    def __init__(self, newest: ConfigVersion | None) -> None:
        self.newest = newest
        self.number = newest.number if newest else 0
        super().__init__(self._sentence(newest))

    @staticmethod
    def _sentence(newest: ConfigVersion | None) -> str:
        if newest is None:
            return "nothing is saved yet: the base version is 0"
        who = newest.author.get_username() if newest.author else "the system"
        when = newest.created_at.isoformat(timespec="seconds")
        return f"version {newest.number} was saved by {who} at {when}"


def newest_version(target: Project | Agent) -> ConfigVersion | None:
    """Return the version in force, its author loaded; None before the first save."""
    return _versions(target).select_related("author").first()


def document_text(target: Project | Agent) -> tuple[str, int]:
    """Return the text in force, exactly as it was saved, and its version number."""
    version = newest_version(target)
    if version is not None:
        return version.yaml, version.number
    return default_document("agent" if isinstance(target, Agent) else "project"), 0


def current(project: Project) -> tuple[ProjectConfig, int]:
    """Return the project's config in force and its version number.

    Entries that no longer pass are left out and listed in `warnings`; raises
    `DocumentError` where nothing usable is left.
    """
    text, number = document_text(project)
    return _project_config(text), number


def current_agent(agent: Agent) -> tuple[AgentConfig, int]:
    """Return the agent's config in force and its version number, like `current`."""
    text, number = document_text(agent)
    return _agent_config(text, frozenset(implemented_tools())), number


def agent_at(agent: Agent, number: int) -> AgentConfig:
    """Return the agent's config of one version; raises `ConfigVersion.DoesNotExist`."""
    text = default_document("agent")
    if number:
        text = _versions(agent).get(number=number).yaml
    return _agent_config(text, frozenset(implemented_tools()))


def config_version(agent: Agent) -> dict[str, int]:
    """Return the pair of versions in force, as the Trace records it."""
    pair: list[Project | Agent] = [agent.project, agent]
    numbers = [
        version.number if version else 0 for version in map(newest_version, pair)
    ]
    return {"project": numbers[0], "agent": numbers[1]}


def check(target: Project | Agent, text: str) -> None:
    """Raise `DocumentError` unless `text` may become the target's document."""
    if isinstance(target, Agent):
        AgentConfig.from_yaml(text, implemented=frozenset(implemented_tools()))
        return
    check_project_text(text, agents=list(target.agents.values_list("name", flat=True)))


def save(
    target: Project | Agent,
    text: str,
    *,
    base_version: int,
    reason: str = "",
    user: User | None = None,
) -> ConfigVersion:
    """Make `text` the document in force; raises `StaleBase` or `DocumentError`."""
    check(target, text)
    project = target.project if isinstance(target, Agent) else target
    with transaction.atomic():
        # One save at a time per project: the number must not be taken twice.
        Project.objects.select_for_update().get(pk=project.pk)
        newest = newest_version(target)
        if (newest.number if newest else 0) != base_version:
            raise StaleBase(newest)
        return ConfigVersion.objects.create(
            project=project,
            agent=target if isinstance(target, Agent) else None,
            number=base_version + 1,
            yaml=text,
            author=user,
            reason=Truncator(reason).chars(_REASON_LENGTH),
        )


def create_project(
    slug: str,
    *,
    title: str = "",
    text: str | None = None,
    reason: str = "",
    user: User | None = None,
) -> Project:
    """Make a project with its document and the agent that document names."""
    with transaction.atomic():
        project = Project.objects.create(slug=slug, title=title)
        begin_project(project, text=text, reason=reason, user=user)
    return project


def begin_project(
    project: Project,
    *,
    text: str | None = None,
    reason: str = "",
    user: User | None = None,
) -> None:
    """Give a new project its document and the agent that document names."""
    text = default_document("project") if text is None else text
    config = ProjectConfig.from_yaml(text)
    with transaction.atomic():
        create_agent(project, config.default_agent, reason=reason, user=user)
        save(project, text, base_version=0, reason=reason, user=user)


def create_agent(
    project: Project,
    name: str,
    *,
    text: str | None = None,
    reason: str = "",
    user: User | None = None,
) -> Agent:
    """Make an agent with its document; a name that cannot be: `ValidationError`."""
    agent = Agent(project=project, name=name)
    agent.full_clean()
    with transaction.atomic():
        agent.save()
        text = default_document("agent") if text is None else text
        save(agent, text, base_version=0, reason=reason, user=user)
    return agent


def ensure_default_project() -> None:
    """Make project `default` where there is no project at all."""
    with transaction.atomic():
        if not Project.objects.exists():
            create_project(DEFAULT_PROJECT, title="Default", reason="first start")


def check_project_text(text: str, *, agents: Collection[str] | None = None) -> None:
    """Raise `DocumentError` unless `text` is sound; `agents` are those that exist."""
    config = ProjectConfig.from_yaml(text)
    if agents is None or config.default_agent in agents:
        return
    meant = did_you_mean(config.default_agent, agents)
    message = f"there is no agent {config.default_agent}"
    message += f"; did you mean {meant}?" if meant else ""
    raise DocumentError([parse(text).problem(("default_agent",), message)])


def _versions(target: Project | Agent) -> QuerySet[ConfigVersion]:
    if isinstance(target, Agent):
        return ConfigVersion.objects.filter(agent=target)
    return ConfigVersion.objects.filter(project=target, agent__isnull=True)


@lru_cache(maxsize=128)
def _project_config(text: str) -> ProjectConfig:
    return ProjectConfig.load(text, lenient=True)


@lru_cache(maxsize=128)
def _agent_config(text: str, implemented: frozenset[str]) -> AgentConfig:
    return AgentConfig.load(text, lenient=True, implemented=implemented)
