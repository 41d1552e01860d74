"""One command from its start to its end: its log, its unread text, its input.

Every command is a CommandSession with a process_id, told to the model only when it
outlives its call. Its log begins with the first byte and ends with the exit, whatever
call is open: all text goes, in this order, to the sink (people), to the spool (the
file) and to `unread` (the next call). Completion is the exit of the shell, not the end
of its pipes. The ProcessTable starts, evicts and ends sessions; the two command tools
only follow them.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable, Mapping
from types import TracebackType
from typing import Any, Self

from sessions_app.environment.artifacts import Spool
from sessions_app.environment.background import UnreadText
from sessions_app.environment.command_input import CommandInput
from sessions_app.environment.output_reader import OutputReader
from sessions_app.environment.output_sink import OutputSink
from sessions_app.environment.process_group import Exit, ProcessGroup
from sessions_app.environment.tool import AbortSignal, Artifact
from traces_app.omnimessage import now

CTRL_C = "\x03"
CTRL_D = "\x04"
_DRAIN_EVERY = 1024 * 1024  # characters between two waits for the sink
_UNREAD_FREE = 1024 * 1024  # characters; beyond it the process is slowed down
_UNREAD_RATE = 16 * 1024 * 1024  # characters per second


class CommandSession:
    """A running or ended command; made, it runs.

    Raises OSError or ValueError when it cannot be started. `on_end` is called when
    the shell has exited and its output is complete.
    """

    def __init__(
        self,
        process_id: str,
        cmd: str,
        *,
        cwd: str,
        env: Mapping[str, str],
        tool_call_id: str,
        sink: OutputSink,
        spool: Spool,
        head: int,
        on_end: Callable[[CommandSession], None],
    ) -> None:
        self.process_id = process_id
        self.cmd = cmd
        self.cwd = cwd
        self.tool_call_id = tool_call_id
        self.started_at = now()
        self.unread = UnreadText(head=head)
        self.log_length = 0  # characters
        self.is_background = False
        self.is_start_told = False  # to the sink
        self.is_exit_told = False  # a call has reported the exit
        self.ending: asyncio.Task[None] | None = None  # the table's, once begun
        self.is_polled = False  # a call is waiting for its output
        self._read_position = 0  # in the log: where the next call's span begins
        self._sink = sink
        self._spool = spool
        self._on_end = on_end
        self._ended = asyncio.Event()
        self.listeners: list[Callable[[], None]] = []  # called on text and at the end
        self._undrained = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self.group = ProcessGroup(
            ["bash", "-lc", cmd], cwd=cwd, env=env, on_exit=self._on_exit
        )
        self.input = CommandInput(self.group.stdin)
        self._reader = OutputReader(
            self.group.stdout,
            self.group.stderr,
            on_text=self._take,
            on_open_line=self._show_open_line,
        )

    @property
    def exit(self) -> Exit | None:
        """Return how the shell ended, None while it runs."""
        return self.group.exit

    @property
    def has_ended(self) -> bool:
        """Return whether the shell has exited and its output is complete."""
        return self._ended.is_set()

    def describe(self) -> dict[str, Any]:
        """Return what `Environment.processes` lists."""
        ended = self.exit
        return {
            "process_id": self.process_id,
            "pid": self.group.pid,
            "cmd": self.cmd,
            "cwd": self.cwd,
            "started_at": self.started_at,
            "running": ended is None,
            "exit_code": ended.exit_code if ended else None,
            "signal": ended.signal if ended else None,
            "background": self.is_background,
            "escaped": False,
        }

    def _take(self, text: str) -> None:
        self.log_length += len(text)
        self._sink.write(self.process_id, text)
        self._spool.write(text)
        is_news = self.unread.add(text)
        self._undrained += len(text)
        if self._undrained >= _DRAIN_EVERY:
            self._undrained = 0
            self._hold(self._sink.drain(self.process_id), "sink")
        if self.is_background and self.unread.total > _UNREAD_FREE:
            self._hold(asyncio.sleep(len(text) / _UNREAD_RATE), "unread")
        if is_news:
            self._notify()

    def _notify(self) -> None:
        for listener in tuple(self.listeners):
            listener()

    def _show_open_line(self, text: str) -> None:
        self._sink.open_line(self.process_id, text)

    def _hold(self, awaited: Awaitable[None], reason: str) -> None:
        """Read nothing more until `awaited` is over."""

        async def hold() -> None:
            try:
                await awaited
            finally:
                self._reader.resume(reason)

        self._reader.pause(reason)
        self._spawn(hold())

    def _spawn(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _on_exit(self) -> None:
        self.input.close()
        self._spawn(self._finish())

    async def _finish(self) -> None:
        try:
            await self._reader.drain()
        finally:
            self._ended.set()
            self._notify()
            self._on_end(self)

    async def send(self, chars: str, *, deadline: float, abort: AbortSignal) -> int:
        """Type `chars`, or do what they stand for; return how many were delivered."""
        if not chars or self.exit is not None:
            return 0
        if chars == CTRL_C:
            self.group.send_signal(signal.SIGINT)
            return 1
        if chars == CTRL_D:
            was_open = self.input.is_open
            self.input.close()
            return int(was_open)
        return await self.input.write(chars, deadline=deadline, abort=abort)

    def settle(self, min_age_s: float) -> None:
        """Give out open lines that old: the call returns and shows them."""
        self._reader.settle(min_age_s)

    def mark_read(self, *, head: int, tail: int) -> dict[str, Any]:
        """Count all as read and return its span of the log.

        Of what comes next so many characters of both ends are kept for a poll.
        """
        span = {
            "item": self.process_id,
            "start": self._read_position,
            "stop": self.log_length,
        }
        self._read_position = self.log_length
        self.unread.restart(head=head, tail=tail)
        return span

    async def artifact(self) -> Artifact | None:
        """Return the file with the whole log so far."""
        return await self._spool.artifact()

    async def end(self) -> bool:
        """End the group and close the pipes; return whether somebody still holds one.

        That can only be a process that has left the group.
        """
        await self.group.end()
        await self._ended.wait()
        is_held = self._reader.is_held
        self._reader.close()
        return is_held

    def discard(self) -> None:
        """Forget the text; its file goes too unless a marker has named it."""
        self._spool.discard()


class Follower:
    """Waits for a command's text on behalf of one call.

    Ends with the command, at `deadline` (loop time), or when `abort` fires.
    """

    def __init__(
        self, session: CommandSession, *, deadline: float, abort: AbortSignal
    ) -> None:
        self._session = session
        self._deadline = deadline
        self._abort = abort
        self._wake = asyncio.Event()

    def __enter__(self) -> Self:
        self._session.is_polled = True
        self._session.listeners.append(self._wake.set)
        self._abort.add_callback(self._wake.set)
        loop = asyncio.get_running_loop()
        self._timer = loop.call_at(self._deadline, self._wake.set)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._timer.cancel()
        self._abort.remove_callback(self._wake.set)
        self._session.listeners.remove(self._wake.set)
        self._session.is_polled = False

    async def next_text(self) -> str:
        """Return what is new of the head of the unread text; empty at the end."""
        while not (text := self._session.unread.take_head()):
            if self._is_over():
                return ""
            self._wake.clear()
            await self._wake.wait()
        return text

    def _is_over(self) -> bool:
        if self._session.has_ended or self._abort.aborted:
            return True
        is_late = asyncio.get_running_loop().time() >= self._deadline
        # A command that has exited is only being drained: its end is worth the wait.
        return is_late and self._session.exit is None
