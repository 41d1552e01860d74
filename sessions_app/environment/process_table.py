"""The commands of one Environment: starts them, keeps at most so many, ends them all.

Ending belongs here and not to the call that started a command: the call returns at
once, the ending goes on, `aclose` waits for it. Caps count background sessions only;
when the table is full, exited ones go first, then the one unused for longest.
"""

from __future__ import annotations

import asyncio
import errno
import time
import uuid
from collections.abc import Mapping
from typing import Any, Literal

from sessions_app.environment.artifacts import ArtifactFolder, Spool, new_stem
from sessions_app.environment.command_session import CommandSession
from sessions_app.environment.output_sink import OutputSink, ProcessChange
from sessions_app.environment.process_group import (
    ENVIRONMENT_TAG,
    Exit,
)
from sessions_app.environment.process_stat import (
    ProcessStat,
    find_tagged,
    sweep_tagged,
)
from sessions_app.environment.tool import ToolError
from sessions_app.environment.truncation import PollWindow

MAX_BACKGROUND = 64
MAX_UNUSED_S = 10 * 24 * 3600.0
Change = Literal["started", "backgrounded", "exited", "evicted"]


class ProcessTable:
    """All command sessions of an Environment."""

    def __init__(
        self,
        *,
        env: Mapping[str, str],
        sink: OutputSink,
        folder: ArtifactFolder,
        poll_cap: int,
        lost: Mapping[str, str],
        max_background: int = MAX_BACKGROUND,
        max_unused_s: float = MAX_UNUSED_S,
    ) -> None:
        self._tag = uuid.uuid4().hex
        self._env = {**env, ENVIRONMENT_TAG: self._tag}
        self._sink = sink
        self._folder = folder
        self.poll_window = PollWindow(poll_cap, path_length=folder.path_length)
        self._gone = dict(lost)  # process_id: why it cannot be reached
        self._max_background = max_background
        self._max_unused_s = max_unused_s
        self._unused_timer: asyncio.TimerHandle | None = None
        self._sessions: dict[str, CommandSession] = {}
        self._used_at: dict[str, float] = {}  # of background sessions
        self._endings: set[asyncio.Task[None]] = set()
        self._escaped: list[tuple[ProcessStat, dict[str, Any]]] = []
        self._spawning = asyncio.Lock()
        self._has_started = False
        self._is_closed = False

    async def start(
        self, cmd: str, *, cwd: str, tool_call_id: str, cap: int
    ) -> CommandSession:
        """Start a command whose first call returns at most `cap` characters.

        Raises `ToolError` when it cannot be started.
        """
        async with self._spawning:
            # Others may work between two spawns: each takes a millisecond or two.
            await asyncio.sleep(0)
            return self._started(cmd, cwd, tool_call_id, cap)

    def _started(
        self, cmd: str, cwd: str, tool_call_id: str, cap: int
    ) -> CommandSession:
        if self._is_closed:
            raise ToolError("the session is closed; nothing was started")
        self._has_started = True
        process_id = new_stem("proc")
        try:
            session = CommandSession(
                process_id,
                cmd,
                cwd=cwd,
                env=self._env,
                tool_call_id=tool_call_id,
                sink=self._sink,
                spool=Spool(self._folder, process_id),
                head=cap,
                on_end=self._on_end,
            )
        except (OSError, ValueError) as error:
            if isinstance(error, OSError) and error.errno == errno.E2BIG:
                raise ToolError(
                    f"cmd is too long for one command ({len(cmd)} characters); "
                    "nothing was started: split it, write long files in several calls"
                ) from error
            raise ToolError(f"the command could not be started: {error}") from error
        self._sessions[process_id] = session
        self.bind(tool_call_id, session)
        # A little later: the facts are read while the shell is at work.
        asyncio.get_running_loop().call_soon(self._tell_start, session)
        return session

    def keep(self, session: CommandSession) -> None:
        """Move a command to the background; makes room when the table is full."""
        session.is_background = True
        self._used_at[session.process_id] = time.monotonic()
        self._tell(session, "backgrounded")
        if self._unused_timer is None:
            self._evict_unused()
        while len(self._used_at) > self._max_background:
            self._evict(min(self._used_at, key=self._order_of_eviction))

    def _order_of_eviction(self, process_id: str) -> tuple[bool, bool, float]:
        session = self._sessions[process_id]
        return session.is_polled, session.exit is None, self._used_at[process_id]

    def _evict_unused(self) -> None:
        """Evict what nobody has used for too long, and look again in time."""
        latest = time.monotonic() - self._max_unused_s
        for process_id, used_at in tuple(self._used_at.items()):
            if used_at <= latest:
                self._evict(process_id)
        if self._used_at:
            wait_s = min(self._used_at.values()) - latest
            loop = asyncio.get_running_loop()
            self._unused_timer = loop.call_later(wait_s, self._evict_unused)
        else:
            self._unused_timer = None

    def _evict(self, process_id: str) -> None:
        session = self._forget(process_id)
        self._gone[process_id] = "evicted"
        if session.exit is None:
            self._tell(session, "evicted")
        self._end(session)
        session.discard()

    def _forget(self, process_id: str) -> CommandSession:
        self._used_at.pop(process_id, None)
        return self._sessions.pop(process_id)

    def bind(self, tool_call_id: str, session: CommandSession) -> None:
        """Say that the call shows the command's output."""
        self._sink.bind(tool_call_id, session.process_id)

    def mark_read(self, session: CommandSession) -> dict[str, Any]:
        """Count what is unread as read; return its span of the command's log."""
        window = self.poll_window
        return session.mark_read(head=window.head, tail=window.tail)

    def is_reachable(self, session: CommandSession) -> bool:
        """Return whether a command runs on, is not being ended, and has its id."""
        is_known = session.process_id in self._sessions
        return session.exit is None and session.ending is None and is_known

    def release(self, session: CommandSession) -> None:
        """Let go of a command that its call does not leave in the background."""
        self._sessions.pop(session.process_id, None)
        self._end(session)

    def find(self, process_id: str) -> CommandSession:
        """Return a background session and count that as use.

        Raises `ToolError`; ids never known, evicted and lost get different answers.
        """
        if process_id in self._used_at:
            self._used_at[process_id] = time.monotonic()
            return self._sessions[process_id]
        reason = self._gone.get(process_id)
        if reason is None:
            raise ToolError(
                f"unknown process_id {process_id!r}; known in this session: "
                f"{self._known() or 'there are none'}"
            )
        raise ToolError(_answer(process_id, reason))

    def _known(self) -> str:
        states = {
            process_id: "exited" if self._sessions[process_id].exit else "running"
            for process_id in self._used_at
        }
        return ", ".join(f"{name} ({state})" for name, state in states.items())

    def exit_before(self, process_id: str) -> Exit | None:
        """Return how a command ended of which only that is known any more."""
        word, _, how = self._gone.get(process_id, "").partition(" ")
        if word != "exited":
            return None
        return Exit(exit_code=int(how)) if how.isdigit() else Exit(signal=how)

    def describe(self) -> list[dict[str, Any]]:
        """Return every command that can be reached, and what escaped."""
        escaped = [facts for stat, facts in self._escaped if stat.is_alive()]
        return [session.describe() for session in self._sessions.values()] + escaped

    async def kill(self, process_id: str) -> bool:
        """End a command, whatever call is open; return whether it was running."""
        session = self._sessions.get(process_id)
        if session is None or session.exit is not None:
            return False
        await asyncio.shield(self._end(session))
        return True

    def get(self, process_id: str) -> CommandSession | None:
        """Return a command by its id, foreground ones too; not counted as use."""
        return self._sessions.get(process_id)

    def _on_end(self, session: CommandSession) -> None:
        if self._gone.get(session.process_id) != "evicted":
            self._tell(session, "exited")
        self._end(session)

    def _end(self, session: CommandSession) -> asyncio.Task[None]:
        """Begin the ending, once; it goes on whoever waits for it."""
        if session.ending is None:
            loop = asyncio.get_running_loop()
            session.ending = loop.create_task(self._run_ending(session))
            self._endings.add(session.ending)
            session.ending.add_done_callback(self._endings.discard)
        return session.ending

    async def _run_ending(self, session: CommandSession) -> None:
        is_held = await session.end()
        if is_held:
            await self._note_escaped()

    async def _note_escaped(self) -> None:
        """Remember what left its group and still holds a pipe."""
        groups = {session.group.pid for session in self._sessions.values()}
        known = {stat.pid for stat, _ in self._escaped}
        found = await asyncio.to_thread(find_tagged, ENVIRONMENT_TAG, self._tag)
        for stat in found:
            if stat.group not in groups and stat.pid not in known:
                self._escaped.append((stat, stat.describe()))

    def _tell_start(self, session: CommandSession) -> None:
        if not session.is_start_told:
            session.is_start_told = True
            self._tell(session, "started")

    def _tell(self, session: CommandSession, change: Change) -> None:
        self._tell_start(session)
        ended = session.exit
        self._sink.process(
            ProcessChange(
                change=change,
                process_id=session.process_id,
                pid=session.group.pid,
                start_ticks=session.group.start_ticks,
                cmd=session.cmd,
                cwd=session.cwd,
                tool_call_id=session.tool_call_id,
                exit_code=ended.exit_code if ended else None,
                signal=ended.signal if ended else None,
            )
        )

    async def aclose(self) -> None:
        """End everything, escaped processes too; returns when nothing is left."""
        self._is_closed = True
        for session in self._sessions.values():
            self._end(session)
        while self._endings:
            await asyncio.wait(self._endings)
        if self._has_started:
            await asyncio.to_thread(sweep_tagged, ENVIRONMENT_TAG, self._tag)
        if self._unused_timer is not None:
            self._unused_timer.cancel()
        for process_id in tuple(self._sessions):
            self._forget(process_id).discard()


def _answer(process_id: str, reason: str) -> str:
    if reason == "evicted":
        return (
            f"process {process_id} was evicted: it was ended to make room for newer "
            "commands; its output cannot be read any more"
        )
    return (
        f"process {process_id} was lost: the server restarted while it ran, and it "
        "was ended; start it again if it is still needed"
    )
