"""Tools and their execution: a workspace, its commands, and the close-out of calls."""

from sessions_app.config.tool_definition import (
    ConfigError,
    ToolDefinition,
    default_tool_definitions,
)
from sessions_app.environment.child_session import (
    ChildSession,
    ChildWish,
    SpawnChild,
    tools_of_child,
)
from sessions_app.environment.environment import Environment
from sessions_app.environment.output_sink import NullSink, OutputSink, ProcessChange
from sessions_app.environment.registry import implemented_tools, register_tool
from sessions_app.environment.tool import (
    AbortSignal,
    Tool,
    ToolContext,
    ToolError,
    ToolResult,
)

__all__ = [
    "AbortSignal",
    "ChildSession",
    "ChildWish",
    "ConfigError",
    "Environment",
    "NullSink",
    "OutputSink",
    "ProcessChange",
    "SpawnChild",
    "Tool",
    "ToolContext",
    "ToolDefinition",
    "ToolError",
    "ToolResult",
    "default_tool_definitions",
    "implemented_tools",
    "register_tool",
    "tools_of_child",
]
