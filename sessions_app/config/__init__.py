"""Documents and definitions: what a project, an agent and a tool are configured to be."""

from sessions_app.config.tool_definition import (
    ConfigError,
    ToolDefinition,
    default_tool_definitions,
)

__all__ = ["ConfigError", "ToolDefinition", "default_tool_definitions"]
