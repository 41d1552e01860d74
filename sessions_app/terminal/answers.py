"""Answers from standard input, a line each, from a terminal, a pipe or a file."""

from __future__ import annotations

import asyncio
import os
import termios
from contextlib import suppress

_CHUNK = 4096  # bytes


class Answers:
    """Reads lines without a thread, so that a question can be taken back."""

    def __init__(self, fd: int | None) -> None:
        self._fd = fd
        self._read = b""
        self._is_over = fd is None

    async def line(self) -> str | None:
        """Return the next line; None once the input has ended.

        Leaving early loses nothing: what was read stays for the next question.
        """
        while b"\n" not in self._read and not self._is_over:
            chunk = await self._chunk()
            self._read += chunk
            self._is_over = not chunk
        if not self._read:
            return None
        line, _, self._read = self._read.partition(b"\n")
        return line.decode(errors="replace")

    def forget_typed(self) -> None:
        """Drop what was typed before the question could be read; a pipe keeps all."""
        if self._fd is not None and os.isatty(self._fd):
            self._read = b""
            with suppress(termios.error):
                termios.tcflush(self._fd, termios.TCIFLUSH)

    async def _chunk(self) -> bytes:
        assert self._fd is not None
        loop = asyncio.get_running_loop()
        ready = asyncio.Event()
        try:
            loop.add_reader(self._fd, ready.set)
        except PermissionError:
            pass  # a plain file, or /dev/null: always ready
        except OSError:
            return b""
        else:
            try:
                await ready.wait()
            finally:
                loop.remove_reader(self._fd)
        try:
            return os.read(self._fd, _CHUNK)
        except OSError:
            return b""
