"""Reads the two output pipes of a command and gives out their text as it is resolved.

1. A readable pipe is read at once in the loop's callback; plain text is given out in
   the same callback, so that a line reaches whoever watches within the millisecond.
2. A block with terminal effects, or of other than ASCII, is worked off in slices; the
   reader rests between them as long as it worked, so that the loop stays free.
3. A line without its newline is given out after 100 ms of quiet: it may be a prompt.
4. After the shell's exit `drain` takes what the pipes hold and closes the text.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import struct
import termios
from collections import deque
from collections.abc import Callable

from sessions_app.environment.read_buffer import SIZE, read_buffer
from sessions_app.environment.terminal_text import TerminalText

QUIET_S = 0.1  # an open line this old is no longer waited for
_PIPE_SIZE = 64 * 1024  # as the kernel makes it
_SLICE = 4 * 1024  # bytes: with effects in all of them two milliseconds
_TURN_S = 0.002  # of work in one turn of the loop
_DRAIN_S = 0.1  # for writers that do not stop after the shell's exit


class _Pipe:
    """One pipe and its text."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self.buffer = read_buffer()
        self.text = TerminalText()
        self.is_open = True
        self.is_large = False
        self.last_read = 0.0  # loop time
        self.unsent_since = 0.0  # loop time of the open line's first character
        self.quiet_timer: asyncio.TimerHandle | None = None
        self.hint = ""

    def read(self) -> memoryview | None:
        """Return what is there: None when that is nothing yet, empty at the end.

        It has to be used up before the next read of any pipe.
        """
        try:
            block = self.buffer.read(self.descriptor)
        except BlockingIOError:
            return None
        if len(block) >= _PIPE_SIZE and not self.is_large:
            self._enlarge()
        return block

    def _enlarge(self) -> None:
        """Give a writer that fills the pipe more room: fewer, larger reads."""
        self.is_large = True
        try:
            fcntl.fcntl(self.descriptor, fcntl.F_SETPIPE_SZ, SIZE)
        except OSError:
            return  # the user's pages are used up: it goes on smaller

    def is_held(self) -> bool:
        """Return whether somebody may still write into it; what he wrote is lost."""
        block = self.read()
        return block is None or len(block) > 0

    def available(self) -> int:
        """Return how many bytes lie in the pipe."""
        if not self.is_open:
            return 0
        answer = fcntl.ioctl(self.descriptor, termios.FIONREAD, bytes(4))
        return int(struct.unpack("i", answer)[0])


class OutputReader:
    """Both output pipes of one command."""

    def __init__(
        self,
        stdout: int,
        stderr: int,
        *,
        on_text: Callable[[str], None],
        on_open_line: Callable[[str], None],
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._pipes = (_Pipe(stdout), _Pipe(stderr))
        self._on_text = on_text
        self._on_open_line = on_open_line
        self._slices: deque[tuple[_Pipe, bytes]] = deque()
        self._slice_timer: asyncio.Handle | None = None
        self._paused: set[str] = set()
        self._is_reading = False
        self._update()

    @property
    def is_held(self) -> bool:
        """Return whether somebody may still write into a pipe."""
        return any(pipe.is_open and pipe.is_held() for pipe in self._pipes)

    def pause(self, reason: str) -> None:
        """Stop reading until `resume` is called with the same reason."""
        self._paused.add(reason)
        self._update()

    def resume(self, reason: str) -> None:
        """Take one reason away; the last one starts the reading again."""
        self._paused.discard(reason)
        self._update()

    def _update(self) -> None:
        shall_read = not self._paused
        if shall_read == self._is_reading:
            return
        self._is_reading = shall_read
        for pipe in self._pipes:
            if not pipe.is_open:
                continue
            if shall_read:
                self._loop.add_reader(pipe.descriptor, self._on_readable, pipe)
            else:
                self._loop.remove_reader(pipe.descriptor)

    def _on_readable(self, pipe: _Pipe) -> None:
        block = pipe.read()
        if block is None:
            return
        if not block:
            self._close(pipe)
            return
        self._take(pipe, block)

    def _close(self, pipe: _Pipe) -> None:
        if pipe.is_open:
            pipe.is_open = False
            self._loop.remove_reader(pipe.descriptor)
            os.close(pipe.descriptor)

    def _take(self, pipe: _Pipe, block: memoryview) -> None:
        if not self._slices and (text := self._plain(pipe, block)) is not None:
            self._give(pipe, pipe.text.feed_plain(text))
            return
        for start in range(0, len(block), _SLICE):
            self._slices.append((pipe, bytes(block[start : start + _SLICE])))
        if self._slice_timer is None:
            self._work()

    @staticmethod
    def _plain(pipe: _Pipe, block: memoryview) -> str | None:
        """Return the text of a block that needs no closer look, else None."""
        if not pipe.text.is_at_rest:
            return None
        if not pipe.buffer.is_free_of_controls(len(block)):
            return None
        try:
            return str(block, "ascii")
        except UnicodeDecodeError:
            return None

    def _work(self) -> None:
        """Resolve slices for a moment, then rest at least as long as that took."""
        self._slice_timer = None
        began = self._loop.time()
        worked = 0.0
        while self._slices and worked < _TURN_S:
            pipe, block = self._slices.popleft()
            self._give(pipe, pipe.text.feed(pipe.text.decode(block)))
            worked = self._loop.time() - began
        if not self._slices and worked < _TURN_S:
            self.resume("slices")
            return
        self.pause("slices")
        self._slice_timer = self._loop.call_later(worked, self._work)

    def _give(self, pipe: _Pipe, text: str) -> None:
        """Hand out resolved text and take care of the line that is open now."""
        now = pipe.last_read = self._loop.time()
        if text:
            self._on_text(text)
        line = pipe.text.open_line
        if text or not pipe.hint:
            pipe.unsent_since = now
        if line != pipe.hint:
            pipe.hint = line
            if line or not text:  # given out text takes the hint's place anyway
                self._on_open_line(line)
        if pipe.text.may_be_prompt and pipe.quiet_timer is None:
            self._await_quiet(pipe, QUIET_S)

    def _await_quiet(self, pipe: _Pipe, delay_s: float) -> None:
        pipe.quiet_timer = self._loop.call_later(delay_s, self._on_quiet, pipe)

    def _on_quiet(self, pipe: _Pipe) -> None:
        pipe.quiet_timer = None
        if not pipe.text.may_be_prompt:
            return
        left = pipe.last_read + QUIET_S - self._loop.time()
        if left > 0.001:
            self._await_quiet(pipe, left)
        else:
            self._send_open_line(pipe)

    def _send_open_line(self, pipe: _Pipe) -> None:
        line = pipe.text.flush()
        pipe.hint = ""
        if line:
            self._on_text(line)

    def settle(self, min_age_s: float) -> None:
        """Give out open lines whose first unsent character is that old."""
        latest = self._loop.time() - min_age_s
        for pipe in self._pipes:
            if pipe.text.open_line and pipe.unsent_since <= latest:
                self._send_open_line(pipe)

    async def drain(self) -> None:
        """Take what the pipes hold after the shell's exit, and close the text.

        All that was in them at the exit is taken; what others go on writing only for
        a moment.
        """
        self.pause("drain")
        owed = {pipe: pipe.available() for pipe in self._pipes}
        deadline = self._loop.time() + _DRAIN_S
        while await self._drain_once(owed, is_late=self._loop.time() > deadline):
            pass
        while self._slices:
            await asyncio.sleep(0.001)
        for pipe in self._pipes:
            if pipe.quiet_timer is not None:
                pipe.quiet_timer.cancel()
            rest = pipe.text.finish()
            if rest:
                self._on_text(rest)

    async def _drain_once(self, owed: dict[_Pipe, int], *, is_late: bool) -> bool:
        """Read each pipe once more; return whether there may be more to take."""
        is_read = False
        for pipe in self._pipes:
            if not pipe.is_open or (is_late and owed[pipe] <= 0):
                continue
            block = pipe.read()
            if block is None:
                continue
            if not block:
                self._close(pipe)
            else:
                owed[pipe] -= len(block)
                self._take(pipe, block)
                is_read = True
        if not is_read:
            return False
        await asyncio.sleep(0)
        while self._slices:  # reading on would only pile them up
            await asyncio.sleep(0.001)
        return True

    def close(self) -> None:
        """Let go of both pipes."""
        self.pause("closed")
        self._slices.clear()
        for pipe in self._pipes:
            if pipe.quiet_timer is not None:
                pipe.quiet_timer.cancel()
            self._close(pipe)
        if self._slice_timer is not None:
            self._slice_timer.cancel()
