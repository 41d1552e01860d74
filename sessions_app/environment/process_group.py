"""Starts a shell in a process group of its own, and ends whole groups for good.

A group gets SIGTERM, a second, then SIGKILL. The leader is reaped only after it got
its signals, since a reaped pid may be somebody else's; what is left of the group then
is found in /proc and killed through pidfds. Processes that left the group are found
by the tags in their environment.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

OWNER_TAG = "PENGUIN_OWNER"
ENVIRONMENT_TAG = "PENGUIN_ENVIRONMENT"
GRACE_S = 1.0  # between SIGTERM and SIGKILL
_PROC = Path("/proc")


@dataclass(frozen=True, slots=True, kw_only=True)
class Exit:
    """How a process ended: one of the two is set."""

    exit_code: int | None = None
    signal: str | None = None  # "SIGINT"


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


class ProcessGroup:
    """A shell, started at once, and everything that stays in its group.

    `stdin`, `stdout` and `stderr` are our ends of its pipes, not blocking; whoever
    takes them closes them. `on_exit` is called on the loop when the shell has exited.
    """

    def __init__(
        self,
        argv: Sequence[str],
        *,
        cwd: str,
        env: Mapping[str, str],
        on_exit: Callable[[], None],
    ) -> None:
        """Start it; raises OSError or ValueError when that cannot be."""
        pipes = [os.pipe() for _ in range(3)]
        (in_read, self.stdin), (self.stdout, out_write), (self.stderr, err_write) = (
            pipes
        )
        try:
            self._process = subprocess.Popen(
                [*_default_signals(), *argv],
                cwd=cwd,
                env=dict(env),
                stdin=in_read,
                stdout=out_write,
                stderr=err_write,
                start_new_session=True,
            )
        except BaseException:
            for end in (self.stdin, self.stdout, self.stderr):
                os.close(end)
            raise
        finally:
            for end in (in_read, out_write, err_write):
                os.close(end)
        for end in (self.stdin, self.stdout, self.stderr):
            os.set_blocking(end, False)
        self.pid = self._process.pid
        stat = ProcessStat.read(self.pid)
        self.start_ticks = stat.start_ticks if stat else 0
        self.exit: Exit | None = None  # of the shell
        self._is_reaped = False
        self._exited = asyncio.Event()
        self._on_exit = on_exit
        self._pidfd = os.pidfd_open(self.pid)
        asyncio.get_running_loop().add_reader(self._pidfd, self._note_exit)

    def _note_exit(self) -> None:
        """Take the exit without reaping: until then nobody else can get the pid."""
        asyncio.get_running_loop().remove_reader(self._pidfd)
        options = os.WEXITED | os.WNOHANG | os.WNOWAIT
        found = os.waitid(os.P_PID, self.pid, options)
        if found is None or found.si_code == os.CLD_EXITED:
            self.exit = Exit(exit_code=found.si_status if found else 0)
        else:
            self.exit = Exit(signal=_signal_name(found.si_status))
        self._exited.set()
        self._on_exit()

    def send_signal(self, number: int) -> None:
        """Signal the whole group, unless the shell is reaped already."""
        if not self._is_reaped:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, number)

    async def end(self) -> None:
        """End the group and reap the shell; returns when nothing of it is left."""
        deadline = time.monotonic() + GRACE_S
        self.send_signal(signal.SIGTERM)
        if self.exit is None:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(GRACE_S):
                    await self._exited.wait()
        if self.exit is None:
            self.send_signal(signal.SIGKILL)
            await self._exited.wait()
        self._reap()
        await self._end_rest(deadline)

    def _reap(self) -> None:
        if not self._is_reaped:
            self._is_reaped = True
            self._process.wait()  # it is a zombie: this does not block
            os.close(self._pidfd)

    async def _end_rest(self, deadline: float) -> None:
        """End those of the group that outlive the shell."""
        pause_s = 0.005
        members: list[ProcessStat] = []
        while _group_exists(self.pid):
            # Zombies count as members for the kernel; whoever inherited them reaps.
            members = [member for member in members if member.is_alive()]
            members = members or await asyncio.to_thread(self._members)
            if not members:
                return
            if time.monotonic() >= deadline:
                for member in members:
                    kill_process(member)
            await asyncio.sleep(pause_s)
            pause_s = min(pause_s * 2, 0.1)

    def _members(self) -> list[ProcessStat]:
        # Nothing older than the shell can be of its group: that is a reused number.
        return [
            stat
            for stat in all_processes()
            if stat.group == self.pid
            and not stat.is_zombie
            and stat.start_ticks >= self.start_ticks
        ]


def _default_signals() -> list[str]:
    """Return a prefix that undoes ignored signals, which a child would inherit."""
    ignored = [
        name
        for name in ("INT", "QUIT")
        if signal.getsignal(signal.Signals[f"SIG{name}"]) is signal.SIG_IGN
    ]
    return ["env", f"--default-signal={','.join(ignored)}"] if ignored else []


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"SIG{number}"


def _group_exists(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


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


def sweep(owner_tag: str) -> list[int]:
    """Kill every process that an owner's environments left behind; return the pids."""
    return sweep_tagged(OWNER_TAG, owner_tag)


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
