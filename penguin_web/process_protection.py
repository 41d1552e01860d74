"""Keeping this process's memory and environment from commands of the same user."""

from __future__ import annotations

import ctypes
import os

PR_SET_DUMPABLE = 4


def protect_process() -> str | None:
    """Make /proc/PID/environ and memory unreadable for other processes of this user.

    Returns a sentence for the log where that protects nothing, else None.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0:
        reason = os.strerror(ctypes.get_errno())
        return f"Commands could read this server's memory: prctl failed ({reason})."
    if os.geteuid() == 0:
        return (
            "This server runs as root: approved commands can do anything on this "
            "machine and read the server's keys. Run it as a user of its own."
        )
    return None
