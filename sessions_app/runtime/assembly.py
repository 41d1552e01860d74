"""From rows to a live session: config in force, client, environment, history, loop."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path

from asgiref.sync import sync_to_async
from django.conf import settings

from sessions_app.config.project_config import AgentConfig, ModelEntry, ProjectConfig
from sessions_app.engine import AgentLoop, History, LoopOptions
from sessions_app.environment import Environment
from sessions_app.llm.providers import ModelSpec, make_client, prepare
from sessions_app.models import CommandSession, ProcessState, Session
from sessions_app.runtime import configs
from sessions_app.runtime.approvals import ApprovalDesk
from sessions_app.runtime.live_session import LiveSession
from sessions_app.runtime.refusal import Refusal
from traces_app import reader
from traces_app.omnimessage import event
from traces_app.omnimessage.payloads import ConfigInForce, DecisionVia

logger = logging.getLogger(__name__)

IDLE_S = 300.0  # of a request, where the agent's document says nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class Blueprint:
    """Everything the rows say about how a session runs now."""

    session: Session
    agent: AgentConfig
    model: ModelEntry
    version: dict[str, int]
    lost: dict[str, str]  # process_id: why it cannot be reached any more


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
    return Blueprint(
        session=session,
        agent=agent,
        model=find_model(project, session.provider, session.model_id),
        version={"project": project_version, "agent": agent_version},
        lost={row.process_id: _why_gone(row) for row in gone},
    )


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
    live: LiveSession, owner_tag: str, *, via: DecisionVia = "auto"
) -> None:
    """Give the live session what its rows say; on a new one, fold its Trace."""
    plan = await sync_to_async(read_blueprint)(live.session_id)
    if live.loop is not None and live.config_version == plan.version:
        return
    spec = model_spec(plan.model)
    await prepare(spec)
    if live.environment is None or not live.environment.processes():
        if live.environment is not None:
            await live.environment.aclose()
        live.environment = _environment(live, plan, owner_tag)
    live.desk = ApprovalDesk(
        live.session_id,
        environment=live.environment,
        append=live.append,
        hub=live.hub,
        via=via,
    )
    live.desk.config_version = plan.version
    if live.client is not None:
        await live.client.aclose()
    live.client = make_client(
        spec, api_key=api_key(plan.model), idle_timeout_s=_idle_s(plan)
    )
    history = await sync_to_async(_history)(live)
    live.loop = AgentLoop(
        llm=live.client,
        environment=live.environment,
        system_prompt=plan.agent.system_prompt,
        history=history,
        record=live.record,
        decide=live.desk.decide,
        options=_options(plan),
        take_queued=live.queue.take,
    )
    live.config_version = plan.version


def _environment(live: LiveSession, plan: Blueprint, owner_tag: str) -> Environment:
    return Environment(
        workspace_dir=plan.session.workspace,
        tools=plan.agent.tools,
        model_is_vision=plan.model.vision,
        env=plan.agent.env,
        artifact_dir=settings.DATA_DIR / "artifacts" / live.session_id,
        owner_tag=owner_tag,
        sink=live.sink,
        lost_processes=plan.lost,
    )


def _options(plan: Blueprint) -> LoopOptions:
    return LoopOptions(
        max_turns=plan.agent.max_turns,
        max_tokens=plan.agent.model.max_tokens or plan.model.max_tokens,
        thinking_level=plan.session.thinking_level or plan.agent.model.thinking_level,
        max_context_length=plan.agent.compaction.max_context_length,
        max_session_turns=plan.agent.compaction.max_session_turns,
        compaction_mode=plan.agent.compaction.mode,
        compaction_prompt=plan.agent.compaction.prompt,
    )


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
