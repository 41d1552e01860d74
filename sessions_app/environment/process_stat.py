"""What /proc tells of processes: who there is, whose it is, and killing just that one."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

_PROC = Path("/proc")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessStat:
    """What /proc tells of a process."""

    pid: int
    state: str  # "Z": a zombie
    group: int
    start_ticks: int

    @classmethod
    def read(cls, pid: int) -> ProcessStat | None:
        """Return the facts of `pid`, None when it is gone."""
        try:
            text = (_PROC / str(pid) / "stat").read_text("utf-8", "replace")
        except OSError:
            return None
        # The name in parentheses may hold anything, spaces and brackets too.
        fields = text[text.rindex(")") + 2 :].split()
        return cls(
            pid=pid,
            state=fields[0],
            group=int(fields[2]),
            start_ticks=int(fields[19]),
        )

    @property
    def is_zombie(self) -> bool:
        """Return whether it has ended and only waits to be reaped."""
        return self.state in "ZX"

    def is_alive(self) -> bool:
        """Return whether exactly this process still runs."""
        found = ProcessStat.read(self.pid)
        return (
            found is not None
            and not found.is_zombie
            and found.start_ticks == self.start_ticks
        )

    def describe(self) -> dict[str, Any]:
        """Return what `Environment.processes` lists of an escaped process."""
        folder = _PROC / str(self.pid)
        try:
            cmd = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            cwd = str((folder / "cwd").readlink())
        except (OSError, UnicodeError):
            cmd = cwd = ""
        return {
            "process_id": None,
            "pid": self.pid,
            "cmd": cmd.strip(),
            "cwd": cwd,
            "started_at": self._started_at(),
            "running": True,
            "exit_code": None,
            "signal": None,
            "background": True,
            "escaped": True,
        }

    def _started_at(self) -> str:
        ticks = os.sysconf("SC_CLK_TCK")
        age_s = time.clock_gettime(time.CLOCK_BOOTTIME) - self.start_ticks / ticks
        started = datetime.now(UTC) - timedelta(seconds=age_s)
        return started.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def all_processes() -> Iterator[ProcessStat]:
    """Yield every process there is at the moment."""
    for entry in _PROC.iterdir():
        if entry.name.isdigit():
            stat = ProcessStat.read(int(entry.name))
            if stat is not None:
                yield stat


def kill_process(stat: ProcessStat) -> bool:
    """Send SIGKILL to exactly that process; False when it is gone."""
    try:
        descriptor = os.pidfd_open(stat.pid)
    except OSError:
        return False
    try:
        again = ProcessStat.read(stat.pid)
        if again is None or again.start_ticks != stat.start_ticks:
            return False
        signal.pidfd_send_signal(descriptor, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return False
    finally:
        os.close(descriptor)
    return True


def find_tagged(name: str, value: str) -> list[ProcessStat]:
    """Return every living process whose environment carries `name=value`."""
    wanted = f"{name}={value}".encode()
    found = []
    for stat in all_processes():
        if stat.is_zombie or stat.pid == os.getpid():
            continue
        try:
            environ = (_PROC / str(stat.pid) / "environ").read_bytes()
        except OSError:
            continue  # gone, or another user's
        if wanted in environ.split(b"\0"):
            found.append(stat)
    return found


def sweep_tagged(name: str, value: str) -> list[int]:
    """Kill tagged processes until none is found: one may fork while it is looked at."""
    killed: list[int] = []
    for _ in range(10):
        found = [stat for stat in find_tagged(name, value) if kill_process(stat)]
        if not found:
            break
        killed += [stat.pid for stat in found if stat.pid not in killed]
        time.sleep(0.01)
    return killed
