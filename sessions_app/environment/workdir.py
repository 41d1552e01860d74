"""Where a command would run: one rule for the card, the digest and the tool."""

from __future__ import annotations

from pathlib import Path

from traces_app.omnimessage.codec import CodecError, loads


def resolve_workdir(workspace: str | Path, workdir: str | None) -> str:
    """Return the absolute directory; empty and missing mean the workspace."""
    return str(Path(workspace).joinpath(workdir or ""))


def command_workdir(workspace: str | Path, name: str, arguments: str) -> str | None:
    """Return where an `exec_command` would run, None for anything else.

    Arguments that do not parse, or with a `workdir` that is no text, name no place:
    such a call fails before it runs.
    """
    if name != "exec_command":
        return None
    try:
        parsed = loads(arguments)
    except (CodecError, ValueError):
        return None
    workdir = parsed.get("workdir") if isinstance(parsed, dict) else None
    if not isinstance(parsed, dict) or not isinstance(workdir, str | None):
        return None
    return resolve_workdir(workspace, workdir)
