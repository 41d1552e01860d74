"""Starts a shell in a process group of its own, and ends whole groups for good.

A group gets SIGTERM, a second, then SIGKILL. The leader is reaped only after it got
its signals, since a reaped pid may be somebody else's; what is left of the group then
is found in /proc and killed through pidfds. Processes that left the group are found
by the tags in their environment.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from sessions_app.environment.process_stat import (
    ProcessStat,
    all_processes,
    kill_process,
    sweep_tagged,
)

logger = logging.getLogger(__name__)

OWNER_TAG = "PENGUIN_OWNER"
ENVIRONMENT_TAG = "PENGUIN_ENVIRONMENT"
GRACE_S = 1.0  # between SIGTERM and SIGKILL


@dataclass(frozen=True, slots=True, kw_only=True)
class Exit:
    """How a process ended: one of the two is set."""

    exit_code: int | None = None
    signal: str | None = None  # "SIGINT"


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
        ours: list[int] = []
        theirs: list[int] = []
        try:
            for is_input in (True, False, False):
                read_end, write_end = os.pipe()
                ours.append(write_end if is_input else read_end)
                theirs.append(read_end if is_input else write_end)
            self._process = _start(argv, theirs, cwd=cwd, env=env)
            self._pidfd = _open_pidfd(self._process)
        except BaseException:
            for end in ours:
                os.close(end)
            raise
        finally:
            for end in theirs:
                os.close(end)
        for end in ours:
            os.set_blocking(end, False)
        self.stdin, self.stdout, self.stderr = ours
        self.pid = self._process.pid
        self.exit: Exit | None = None  # of the shell
        self._is_reaped = False
        self._exited = asyncio.Event()
        self._on_exit = on_exit
        asyncio.get_running_loop().add_reader(self._pidfd, self._note_exit)

    @cached_property
    def start_ticks(self) -> int:
        """Return the start time that tells this pid from a later one.

        Reading it costs half a millisecond while the shell is just being loaded.
        """
        stat = ProcessStat.read(self.pid)
        return stat.start_ticks if stat else 0

    def _note_exit(self) -> None:
        """Take the exit without reaping: until then nobody else can get the pid."""
        asyncio.get_running_loop().remove_reader(self._pidfd)
        self.exit = _exit_of(self.pid)
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


def _start(
    argv: Sequence[str], pipes: Sequence[int], *, cwd: str, env: Mapping[str, str]
) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [*_default_signals(), *argv],
        cwd=cwd,
        env=dict(env),
        stdin=pipes[0],
        stdout=pipes[1],
        stderr=pipes[2],
        start_new_session=True,
    )


def _open_pidfd(process: subprocess.Popen[bytes]) -> int:
    try:
        return os.pidfd_open(process.pid)
    except OSError:
        # Out of descriptors: what cannot be watched may not run.
        process.kill()
        process.wait()
        raise


def _default_signals() -> list[str]:
    """Return a prefix that undoes ignored signals, which a child would inherit."""
    ignored = [
        name
        for name in ("INT", "QUIT")
        if signal.getsignal(signal.Signals[f"SIG{name}"]) is signal.SIG_IGN
    ]
    return ["env", f"--default-signal={','.join(ignored)}"] if ignored else []


def _exit_of(pid: int) -> Exit:
    """Return how a child ended, and leave it to be reaped."""
    try:
        found = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        # The host reaps all children by itself, so nobody knows the code.
        logger.warning("the exit code of process %d was taken by somebody else", pid)
        return Exit(exit_code=0)
    assert found is not None
    if found.si_code == os.CLD_EXITED:
        return Exit(exit_code=found.si_status)
    return Exit(signal=_signal_name(found.si_status))


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


def sweep(owner_tag: str) -> list[int]:
    """Kill every process that an owner's environments left behind; return the pids."""
    return sweep_tagged(OWNER_TAG, owner_tag)
