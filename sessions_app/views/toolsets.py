"""The tools an agent really has, as the settings page shows them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sessions_app.config.documents import DocumentError
from sessions_app.config.project_config import ModelEntry, ProjectConfig
from sessions_app.config.tool_definition import ToolDefinition
from sessions_app.config.yaml_positions import Problem
from sessions_app.models import Agent
from sessions_app.runtime import configs
from traces_app.figures import duration

_MODELS = {
    None: "every model",
    "vision": "models that see images",
    "text-only": "models that see no images",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolRow:
    """One definition in force."""

    name: str
    permission: str
    timeout: str
    cap: str
    offered_to: str
    is_offered: bool  # to the project's default model


@dataclass(frozen=True, slots=True, kw_only=True)
class Toolset:
    """What an agent's document comes to."""

    agent: Agent
    rows: Sequence[ToolRow] = ()
    is_default: bool = False  # the document names no tools of its own
    left_out: Sequence[Problem] = ()
    mcp_servers: Sequence[str] = ()  # names; carried along, not connected
    unusable: Sequence[Problem] = ()  # why the whole document is not in force


def toolset_of(agent: Agent, project: ProjectConfig) -> Toolset:
    """Return the agent's tools; a document nobody can use says why."""
    try:
        config, _ = configs.current_agent(agent)
    except DocumentError as error:
        return Toolset(agent=agent, unusable=error.problems)
    model = project.model(project.default_model)
    return Toolset(
        agent=agent,
        rows=[_row(definition, model) for definition in config.tools],
        is_default=config.has_default_tools,
        left_out=config.warnings,
        mcp_servers=[str(server.get("name", "")) for server in config.mcp_servers],
    )


def _row(definition: ToolDefinition, model: ModelEntry | None) -> ToolRow:
    cap, timeout_ms = definition.max_output_length, definition.timeout_ms
    model_class = "vision" if model is not None and model.vision else "text-only"
    return ToolRow(
        name=definition.name,
        permission=definition.permission or "none: always asked in read-only",
        timeout=duration(timeout_ms) if timeout_ms > 0 else "no limit",
        cap=f"{cap:,} characters" if cap > 0 else "no cut",
        offered_to=_MODELS[definition.for_model],
        is_offered=definition.for_model in (None, model_class),
    )
