"""Where a command would run: one rule for the card, the digest and the tool."""

from __future__ import annotations

import os
from pathlib import Path

from sessions_app.environment.arguments import ArgumentsError, parse_arguments
from sessions_app.environment.tool import ToolError

_COMMAND = "exec_command"


def command_workdir(workspace: Path, name: str, arguments: str) -> str | None:
    """Return the absolute directory an `exec_command` would run in, else None.

    Arguments that do not parse, or with a `workdir` that is no text, name no place:
    such a call fails before it runs.
    """
    if name != _COMMAND:
        return None
    try:
        workdir = parse_arguments(arguments).get("workdir", "")
    except ArgumentsError:
        return None
    if not isinstance(workdir, str):
        return None
    return resolved_directory(workspace, workdir)


def resolved_directory(workspace: Path, workdir: str) -> str:
    """Return the absolute directory that `workdir` names."""
    return os.path.normpath(workspace / workdir)


def checked_directory(workspace: Path, workdir: str) -> str:
    """Return the directory to run in; raises `ToolError` when it is none."""
    directory = resolved_directory(workspace, workdir)
    if "\0" in directory:
        raise ToolError("workdir holds a NUL character; nothing was started")
    if not Path(directory).exists():
        raise ToolError(f"workdir {directory} does not exist; nothing was started")
    if not Path(directory).is_dir():
        raise ToolError(f"workdir {directory} is not a directory; nothing was started")
    return directory
