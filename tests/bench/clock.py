"""A command that prints the time, line by line, as the measured output."""

import re

LINES = 60
ENOUGH = 50  # the last ones may come with the complete message
SESSIONS = (1, 10, 50, 100)
STAMP = re.compile(r"\d{10}\.\d{6}")


def command(sessions: int) -> str:
    """Return the command: a line per 50 ms, without a process per line.

    It waits until all sessions have started, for their starts are not what is
    measured.
    """
    return (
        f"exec 3<> <(:); read -rt {1 + sessions / 10} -u 3 || true; "
        f"for i in $(seq 1 {LINES}); do "
        "echo $EPOCHREALTIME; read -rt 0.05 -u 3 || true; done"
    )
