"""The agent document: system prompt, tools, limits, environment of its commands."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from sessions_app.config.documents import (
    DocumentError,
    entries_at,
    mapping_at,
    read_document,
)
from sessions_app.config.schema_check import did_you_mean
from sessions_app.config.tool_definition import (
    ConfigError,
    ToolDefinition,
    default_tool_definitions,
)
from sessions_app.config.yaml_positions import Document, Path, Problem

BUILTIN_TOOLS = frozenset(
    {
        "exec_command",
        "input_command",
        "run_subagent",
        "input_subagent",
        "read_image",
        "describe_image",
    }
)
_DAY_S = 86_400.0
_TOOLS: Path = ("tools", "builtin")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelOptions:
    """How the agent's requests are made; None leaves it to the model's entry."""

    max_tokens: int | None = None
    thinking_level: str | None = None
    timeout_ms: int | None = None  # longest silence; 0 or less: no limit

    @property
    def idle_timeout_s(self) -> float:
        """Return the longest silence of the provider in seconds."""
        if self.timeout_ms is None:
            return 300.0
        return self.timeout_ms / 1000 if self.timeout_ms > 0 else _DAY_S


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionOptions:
    """When a long conversation is summarised; None: the engine's own default."""

    max_context_length: int | None = None  # tokens
    max_session_turns: int | None = None
    mode: str = "summary"
    prompt: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentConfig:
    """An agent document in force."""

    system_prompt: str
    tools: Sequence[ToolDefinition]
    has_default_tools: bool = True  # the document names no tools of its own
    mcp_servers: Sequence[Mapping[str, Any]] = ()
    max_turns: int = -1
    model: ModelOptions = field(default_factory=ModelOptions)
    compaction: CompactionOptions = field(default_factory=CompactionOptions)
    env: Mapping[str, str] = field(default_factory=dict)
    warnings: tuple[Problem, ...] = ()  # what a lenient load left out, and why

    @classmethod
    def from_yaml(
        cls, text: str, *, implemented: Collection[str] = BUILTIN_TOOLS
    ) -> Self:
        """Build it from a document without a fault; raises `DocumentError`."""
        return cls.load(text, implemented=implemented)

    @classmethod
    def load(
        cls,
        text: str,
        *,
        lenient: bool = False,
        implemented: Collection[str] = BUILTIN_TOOLS,
    ) -> Self:
        """Build it; `lenient` leaves faulty entries out, with a warning each.

        Raises `DocumentError` where leaving out does not help.
        """
        document, warnings = read_document(text, "agent", lenient=lenient)
        definitions, problems = _definitions(document, implemented)
        if problems and not lenient:
            raise DocumentError(problems)
        tools = mapping_at(document, "tools")
        has_default_tools = tools.get("builtin") is None
        return cls(
            system_prompt=document.value["system_prompt"],
            tools=default_tool_definitions() if has_default_tools else definitions,
            has_default_tools=has_default_tools,
            mcp_servers=tuple(tools.get("mcpServers") or ()),
            max_turns=document.value.get("max_turns", -1),
            model=_model(mapping_at(document, "model")),
            compaction=_compaction(mapping_at(document, "compaction")),
            env=mapping_at(document, "env"),
            warnings=(*warnings, *problems),
        )


def _model(value: Mapping[str, Any]) -> ModelOptions:
    return ModelOptions(
        max_tokens=value.get("max_tokens"),
        thinking_level=value.get("thinking_level"),
        timeout_ms=value.get("timeoutMs"),
    )


def _compaction(value: Mapping[str, Any]) -> CompactionOptions:
    return CompactionOptions(
        max_context_length=value.get("max_context_length"),
        max_session_turns=value.get("max_session_turns"),
        mode=value.get("mode") or "summary",
        prompt=value.get("prompt"),
    )


def _definitions(
    document: Document, implemented: Collection[str]
) -> tuple[list[ToolDefinition], list[Problem]]:
    """Return the sound entries of `tools.builtin`, and what is wrong with the rest."""
    definitions: list[ToolDefinition] = []
    problems: list[Problem] = []
    seen: dict[str, int] = {}
    for path, entry in entries_at(document, _TOOLS):
        name = entry["name"]
        problem = _name_problem(document, path, name, implemented)
        if name in seen:
            message = f"duplicate tool name {name}; the first is on line {seen[name]}"
            problem = document.problem((*path, "name"), message)
        elif problem is None:
            problem = _definition_problem(document, path, entry, definitions)
        seen.setdefault(name, document.values[(*path, "name")].line)
        if problem is not None:
            problems.append(problem)
    return definitions, problems


def _name_problem(
    document: Document, path: Path, name: str, implemented: Collection[str]
) -> Problem | None:
    if name not in implemented:
        meant = did_you_mean(name, implemented)
        remedy = (
            f"did you mean {meant}?"
            if meant
            else "known: " + ", ".join(sorted(implemented))
        )
        message = f"no tool is implemented under the name {name}; {remedy}"
        return document.problem((*path, "name"), message)
    return None


def _definition_problem(
    document: Document,
    path: Path,
    entry: Mapping[str, Any],
    definitions: list[ToolDefinition],
) -> Problem | None:
    """Add the definition of `entry`; return what keeps it from being one."""
    try:
        definitions.append(ToolDefinition.from_config(dict(entry)))
    except ConfigError as error:
        return document.problem((*path, error.field), error.message)
    return None
