"""The explicit list of what is implemented: tool names and how each tool is made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sessions_app.config.tool_definition import ToolDefinition
from sessions_app.environment.process_table import ProcessTable
from sessions_app.environment.subagent_table import SubagentTable
from sessions_app.environment.tool import Tool, ToolFactory
from sessions_app.environment.tools.describe_image import DescribeImage
from sessions_app.environment.tools.exec_command import ExecCommand
from sessions_app.environment.tools.input_command import InputCommand
from sessions_app.environment.tools.input_subagent import InputSubagent
from sessions_app.environment.tools.read_image import ReadImage
from sessions_app.environment.tools.run_subagent import RunSubagent


@dataclass(frozen=True, slots=True, kw_only=True)
class Partners:
    """What built-in tools share with the Environment they belong to."""

    table: ProcessTable
    subagents: SubagentTable


_BUILTIN: dict[str, Callable[[ToolDefinition, Partners], Tool]] = {
    "exec_command": lambda definition, own: ExecCommand(definition, own.table),
    "input_command": lambda definition, own: InputCommand(definition, own.table),
    "run_subagent": lambda definition, own: RunSubagent(definition, own.subagents),
    "input_subagent": lambda definition, own: InputSubagent(definition, own.subagents),
    "read_image": lambda definition, own: ReadImage(definition),
    "describe_image": lambda definition, own: DescribeImage(definition),
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
