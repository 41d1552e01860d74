"""Where a command would run: one rule for the card, the digest and the tool."""

from __future__ import annotations

from pathlib import Path

from sessions_app.environment.arguments import ArgumentsError, parse_arguments
from sessions_app.environment.tools.exec_command import ExecCommand, resolved_directory


def command_workdir(workspace: Path, name: str, arguments: str) -> str | None:
    """Return the absolute directory an `exec_command` would run in, else None.

    Arguments that do not parse, or with a `workdir` that is no text, name no place:
    such a call fails before it runs.
    """
    if name != ExecCommand.name:
        return None
    try:
        workdir = parse_arguments(arguments).get("workdir", "")
    except ArgumentsError:
        return None
    if not isinstance(workdir, str):
        return None
    return resolved_directory(workspace, workdir)
