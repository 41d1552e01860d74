"""A command that prints the time, line by line, as the measured output."""

import re

LINES = 60
SESSIONS = (1, 10, 50)
STAMP = re.compile(r"\d{10}\.\d{6}")
# One line per 50 ms without a process per line, each the moment it was written.
COMMAND = (
    f"exec 3<> <(:); for i in $(seq 1 {LINES}); do "
    "echo $EPOCHREALTIME; read -rt 0.05 -u 3 || true; done"
)
