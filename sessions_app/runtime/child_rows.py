"""Making subagents: what a call may ask for, and the rows of a child. Synchronous."""

from __future__ import annotations

from dataclasses import dataclass

from sessions_app.config.project_config import ModelEntry
from sessions_app.models import Agent, Session
from sessions_app.runtime import configs, family
from sessions_app.runtime.refusal import conflict
from sessions_app.runtime.sessions import find_agent, find_model, opening
from traces_app import writer


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildPlan:
    """What a subagent will be: that of its parent where nothing else is asked for."""

    parent: Session
    agent: Agent
    model: ModelEntry
    thinking_level: str | None
    system_prompt: str
    version: dict[str, int]


def plan_child(
    parent_id: str, *, agent: str | None, provider: str | None, model_id: str | None
) -> ChildPlan:
    """Look up a subagent's agent and model; raises `Refusal` naming what is unknown."""
    sessions = Session.objects.select_related("project", "agent", "trace")
    parent = sessions.get(pk=parent_id)
    if parent.depth:
        raise conflict("too_deep", "A subagent cannot have subagents of its own.")
    config, project_version = configs.current(parent.project)
    row = find_agent(parent.project, config, agent) if agent else parent.agent
    agent_config, agent_version = configs.current_agent(row)
    own_config, _ = configs.current_agent(parent.agent)
    model = f"{provider or parent.provider}/{model_id or parent.model_id}"
    return ChildPlan(
        parent=parent,
        agent=row,
        model=find_model(config, model),
        thinking_level=parent.thinking_level or own_config.model.thinking_level,
        system_prompt=agent_config.system_prompt,
        version={"project": project_version, "agent": agent_version},
    )


def create_child(session_id: str, plan: ChildPlan, *, tool_call_id: str) -> None:
    """Make the subagent's rows and its Trace, inside the caller's transaction."""
    parent = plan.parent
    trace = writer.create_trace(
        session_id=session_id,
        project=parent.project.slug,
        owner=parent.trace.owner,
        parent_session_id=parent.pk,
    )
    child = Session.objects.create(
        id=session_id,
        project=parent.project,
        agent=plan.agent,
        trace=trace,
        parent=parent,
        depth=parent.depth + 1,
        provider=plan.model.provider,
        model_id=plan.model.model_id,
        thinking_level=plan.thinking_level,
        workspace=parent.workspace,
        approval_mode=_mode_of(parent),
        created_by=parent.created_by,
    )
    family.add_child(child, tool_call_id=tool_call_id)
    writer.append(
        trace.pk, opening(child, plan.model, plan.system_prompt, plan.version)
    )


def _mode_of(parent: Session) -> str:
    """Return the mode as it is now: it may have changed since the plan was made."""
    return Session.objects.values_list("approval_mode", flat=True).get(pk=parent.pk)
