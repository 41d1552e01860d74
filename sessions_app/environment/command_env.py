"""The environment variables of a command: few of the host's, the agent's, ours."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

# Everything else of the host stays out: keys, settings of the server, its address.
_LET_THROUGH = frozenset(
    {
        "PATH",
        "HOME",
        "USER",
        "LOGNAME",
        "SHELL",
        "LANG",
        "TZ",
        "TMPDIR",
        "SSH_AUTH_SOCK",
    }
)
# Nobody sits at a terminal: no colours, no pager, no editor, no prompt that waits.
_FIXED = {
    "TERM": "dumb",
    "NO_COLOR": "1",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "GIT_EDITOR": "true",
    "GIT_TERMINAL_PROMPT": "0",
}


def command_env(
    host: Mapping[str, str], own: Mapping[str, str], passthrough: Iterable[str] = ()
) -> dict[str, str]:
    """Return the variables of every command; `own` are the agent's."""
    allowed = _LET_THROUGH | set(passthrough)
    variables = {
        name: value
        for name, value in host.items()
        if name in allowed or name.startswith("LC_")
    }
    return {**variables, **own, **_FIXED}
