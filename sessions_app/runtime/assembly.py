"""From rows to a live session: config in force, client, environment, history, loop."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Protocol

from asgiref.sync import sync_to_async
from django.conf import settings

from sessions_app.config.project_config import AgentConfig, ModelEntry, ProjectConfig
from sessions_app.engine import AgentLoop, History, LoopOptions
from sessions_app.engine.describer import Describer
from sessions_app.engine.messages import call_id
from sessions_app.environment import (
    ChildSession,
    Environment,
    SpawnChild,
    tools_of_child,
)
from sessions_app.llm.providers import ModelSpec, make_client, prepare
from sessions_app.models import CommandSession, ProcessState, Session
from sessions_app.runtime import configs, family
from sessions_app.runtime.approvals import ApprovalDesk
from sessions_app.runtime.budget import over_budget
from sessions_app.runtime.live_session import LiveSession
from sessions_app.runtime.refusal import Refusal
from traces_app import reader
from traces_app.omnimessage import event
from traces_app.omnimessage.payloads import ConfigInForce, DecisionVia

logger = logging.getLogger(__name__)

IDLE_S = 300.0  # of a request, where the agent's document says nothing


class Spawner(SpawnChild, Protocol):
    """Makes subagents, and finds those that exist."""

    def child(self, session_id: str) -> ChildSession: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Blueprint:
    """Everything the rows say about how a session runs now."""

    session: Session
    agent: AgentConfig
    model: ModelEntry
    version: dict[str, int]
    lost: dict[str, str]  # process_id: why it cannot be reached any more
    children: list[str]  # idle subagents
    gone_children: dict[str, str]
    image_hosts: Sequence[str]
    vision_model: ModelEntry | None  # looks at images for a model that cannot
    prices: Mapping[str, Mapping[str, float]]  # by PROVIDER/ID
    budget_usd: float | None  # of a session with its subagents


def read_blueprint(session_id: str) -> Blueprint:
    """Read the newest config for the session; raises `Refusal` with what to mend."""
    session = Session.objects.select_related("project", "agent").get(pk=session_id)
    project, project_version = configs.current(session.project)
    agent, agent_version = configs.current_agent(session.agent)
    if not Path(session.workspace).is_dir():
        raise Refusal(
            "workspace_missing",
            f"The workspace {session.workspace} is not there. Restore the folder; "
            "the session goes on with it.",
            status=409,
        )
    gone = CommandSession.objects.filter(session=session).exclude(
        state=ProcessState.RUNNING
    )
    children, gone_children = family.known_children(session_id)
    return Blueprint(
        session=session,
        agent=agent,
        model=find_model(project, session.provider, session.model_id),
        version={"project": project_version, "agent": agent_version},
        lost={row.process_id: _why_gone(row) for row in gone},
        children=children,
        gone_children=gone_children,
        image_hosts=project.allowed_image_hosts,
        vision_model=_vision_model(project),
        prices=project.prices,
        budget_usd=project.budget_usd,
    )


def _as_it_began(plan: Blueprint) -> Blueprint:
    """Return the plan with the agent's version of the task that comes back."""
    version = _last_config(plan.session.trace_id)
    if version is None:
        return plan
    agent = configs.agent_at(plan.session.agent, version["agent"])
    return replace(
        plan, agent=agent, version={**plan.version, "agent": version["agent"]}
    )


def _vision_model(project: ProjectConfig) -> ModelEntry | None:
    entry = project.model(project.vision_model) if project.vision_model else None
    return entry if entry and entry.vision else None


def _why_gone(row: CommandSession) -> str:
    if row.state == ProcessState.EXITED:
        return f"exited {row.signal or row.exit_code}"
    return str(row.state)


def find_model(project: ProjectConfig, provider: str, model_id: str) -> ModelEntry:
    """Return the project's entry of the model; raises `Refusal` when it is gone."""
    for entry in project.models:
        if (entry.provider, entry.model_id) == (provider, model_id):
            return entry
    raise Refusal(
        "model_missing",
        f"The model {provider}/{model_id} is not in the project's config any more. "
        "Add it there, or start a session with another model.",
        status=409,
    )


async def prepare_live(
    live: LiveSession,
    owner_tag: str,
    *,
    via: DecisionVia = "auto",
    spawner: Spawner | None = None,
) -> None:
    """Give the live session what its rows say; on a new one, fold its Trace."""
    plan = await sync_to_async(read_blueprint)(live.session_id)
    if live.loop is not None and live.config_version == plan.version:
        return
    history = await sync_to_async(_history)(live)
    if history.open_calls:
        plan = await sync_to_async(_as_it_began)(plan)
    spec = model_spec(plan.model)
    await prepare(spec)
    if live.environment is None or not _holds_something(live.environment):
        if live.environment is not None:
            await live.environment.aclose()
        live.environment = _environment(live, plan, owner_tag, spawner)
    live.desk = ApprovalDesk(
        live.session_id,
        environment=live.environment,
        append=live.append,
        hub=live.hub,
        unasked=live.record.unasked,
        returning=[call_id(call) for call in history.open_calls],
        via=via,
    )
    live.desk.config_version = plan.version
    if live.client is not None:
        await live.client.aclose()
    live.client = make_client(
        spec, api_key=api_key(plan.model), idle_timeout_s=_idle_s(plan)
    )
    live.loop = AgentLoop(
        llm=live.client,
        environment=live.environment,
        system_prompt=plan.agent.system_prompt,
        history=history,
        record=live.record,
        decide=live.desk.decide,
        options=_options(plan),
        take_queued=live.queue.take,
        why_not=partial(over_budget, plan.session, plan.budget_usd),
    )
    live.config_version = plan.version


def _holds_something(environment: Environment) -> bool:
    """Return whether the next task may need what lives in this environment."""
    return bool(environment.processes() or environment.subagents())


def _environment(
    live: LiveSession, plan: Blueprint, owner_tag: str, spawner: Spawner | None
) -> Environment:
    is_child = plan.session.depth > 0
    tools = tools_of_child(plan.agent.tools) if is_child else plan.agent.tools
    return Environment(
        workspace_dir=plan.session.workspace,
        tools=tools,
        spawn_child=None if is_child else spawner,
        children=[spawner.child(key) for key in plan.children] if spawner else (),
        gone_children=plan.gone_children,
        model_is_vision=plan.model.vision,
        env=plan.agent.env,
        artifact_dir=settings.DATA_DIR / "artifacts" / live.session_id,
        owner_tag=owner_tag,
        sink=live.sink,
        lost_processes=plan.lost,
        image_hosts=plan.image_hosts,
        describe=_describer(plan),
    )


def _describer(plan: Blueprint) -> Describer | None:
    entry = plan.vision_model
    if entry is None:
        return None
    return Describer(
        partial(
            make_client,
            model_spec(entry),
            api_key=api_key(entry),
            idle_timeout_s=_idle_s(plan),
        )
    )


def _options(plan: Blueprint) -> LoopOptions:
    return LoopOptions(
        max_turns=plan.agent.max_turns,
        max_tokens=plan.agent.model.max_tokens or plan.model.max_tokens,
        thinking_level=_thinking_level(plan),
        max_context_length=plan.agent.compaction.max_context_length,
        max_session_turns=plan.agent.compaction.max_session_turns,
        compaction_mode=plan.agent.compaction.mode,
        compaction_prompt=plan.agent.compaction.prompt,
        prices=plan.prices,
    )


def _thinking_level(plan: Blueprint) -> str | None:
    """Return the session's level; a subagent's is its parent's, also when that is none."""
    if plan.session.depth:
        return plan.session.thinking_level
    return plan.session.thinking_level or plan.agent.model.thinking_level


def _idle_s(plan: Blueprint) -> float:
    """Return how long a provider may be silent."""
    timeout_ms = plan.agent.model.timeout_ms
    return timeout_ms / 1000 if timeout_ms else IDLE_S


def _history(live: LiveSession) -> History:
    events = reader.iter_events(live.trace_id)
    return History.from_messages(event.message for event in events)


def model_spec(entry: ModelEntry) -> ModelSpec:
    """Return what the client needs to know of the model."""
    base_url = entry.base_url or settings.PROVIDER_BASE_URLS.get(entry.provider)
    return ModelSpec(
        provider=entry.provider,
        model_id=entry.model_id,
        is_vision=entry.vision,
        context_window=entry.context_window,
        max_tokens=entry.max_tokens,
        base_url=base_url or None,
        protocol=entry.protocol,
    )


def api_key(entry: ModelEntry) -> str | None:
    """Return the provider's key from the server's environment, read at start.

    The keys of OpenAI and Anthropic go where the operator's environment says and
    nowhere else: who may edit a document must not be able to have one sent to an
    address of his own. Another endpoint is a provider with a name of its own.
    """
    if entry.base_url and entry.provider in settings.PROVIDER_BASE_URLS:
        return None
    name = entry.provider.lower().replace("-", "_")
    key: str | None = settings.PROVIDER_KEYS.get(name)
    return key


async def record_config(live: LiveSession) -> None:
    """Put the config version in force on record when it is another than before."""
    last = await sync_to_async(_last_config)(live.trace_id)
    if last != live.config_version:
        await live.record(event(ConfigInForce(version=live.config_version)))


def _last_config(trace_id: int) -> dict[str, int] | None:
    newest = reader.last_event(trace_id, "config_in_force")
    if newest is None:
        return None
    payload = newest.message.payload
    return dict(payload.version) if isinstance(payload, ConfigInForce) else None
