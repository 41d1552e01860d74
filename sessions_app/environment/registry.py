"""The explicit list of what is implemented: tool names and how each tool is made."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from sessions_app.config.tool_definition import ConfigError, ToolDefinition
from sessions_app.environment.arguments import ArgumentsCheck
from sessions_app.environment.describe import Describe
from sessions_app.environment.image_source import ImageSource
from sessions_app.environment.process_table import ProcessTable
from sessions_app.environment.subagent_table import SubagentTable
from sessions_app.environment.tool import Tool, ToolFactory
from sessions_app.environment.tools.describe_image import DescribeImage
from sessions_app.environment.tools.exec_command import ExecCommand
from sessions_app.environment.tools.input_command import InputCommand
from sessions_app.environment.tools.input_subagent import InputSubagent
from sessions_app.environment.tools.read_image import ReadImage
from sessions_app.environment.tools.run_subagent import RunSubagent

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Partners:
    """What built-in tools share with the Environment they belong to."""

    table: ProcessTable
    subagents: SubagentTable
    images: ImageSource
    describe: Describe | None


_BUILTIN: dict[str, Callable[[ToolDefinition, Partners], Tool]] = {
    "exec_command": lambda definition, own: ExecCommand(definition, own.table),
    "input_command": lambda definition, own: InputCommand(definition, own.table),
    "run_subagent": lambda definition, own: RunSubagent(definition, own.subagents),
    "input_subagent": lambda definition, own: InputSubagent(definition, own.subagents),
    "read_image": lambda definition, own: ReadImage(definition, own.images),
    "describe_image": lambda definition, own: DescribeImage(
        definition, own.images, own.describe
    ),
}
_custom: dict[str, ToolFactory] = {}


def register_tool(name: str, factory: ToolFactory) -> None:
    """Make a tool known under `name`; a definition of that name then uses it.

    Registering again replaces a custom tool. Raises ValueError for a built-in name.
    """
    if name in _BUILTIN:
        raise ValueError(f"{name} is a built-in tool and cannot be replaced")
    _custom[name] = factory


def implemented_tools() -> list[str]:
    """Return every name that a definition may use."""
    return [*_BUILTIN, *_custom]


def make_tool(definition: ToolDefinition, partners: Partners) -> Tool | None:
    """Return the tool of a definition, None when nothing implements its name."""
    if definition.name in _BUILTIN:
        return _BUILTIN[definition.name](definition, partners)
    factory = _custom.get(definition.name)
    return factory(definition) if factory else None


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferedTool:
    """A tool a model may call."""

    definition: ToolDefinition
    tool: Tool
    check: ArgumentsCheck


def offered_tools(
    definitions: Iterable[ToolDefinition], model_is_vision: bool, partners: Partners
) -> dict[str, OfferedTool]:
    """Return the tools this model gets; duplicate names raise `ConfigError`."""
    model_class = "vision" if model_is_vision else "text-only"
    offered: dict[str, OfferedTool] = {}
    seen: set[str] = set()
    for definition in definitions:
        name = definition.name
        if name in seen:
            raise ConfigError(f"duplicate tool name {name}", field="name")
        seen.add(name)
        if definition.for_model not in (None, model_class):
            continue
        tool = make_tool(definition, partners)
        if tool is None:
            logger.warning("no tool is implemented as %r; not offered", name)
            continue
        check = ArgumentsCheck(definition.parameters)
        offered[name] = OfferedTool(definition=definition, tool=tool, check=check)
    return offered
