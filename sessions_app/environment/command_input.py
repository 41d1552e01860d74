"""The stdin of a command: types text into a pipe that may be full."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator

from sessions_app.environment.tool import AbortSignal

# A pipe takes so many bytes as a whole or not at all: no character is ever cut.
_ATOMIC = 4096
_CHARACTER_SIZE = 4  # bytes, at most


class CommandInput:
    """Our end of a command's stdin."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._lock = asyncio.Lock()
        self._wake = asyncio.Event()

    @property
    def is_open(self) -> bool:
        """Return whether anything can still be typed."""
        return self._descriptor >= 0

    async def write(self, text: str, *, deadline: float, abort: AbortSignal) -> int:
        """Type `text`; return how many characters were taken.

        What the pipe did not take by `deadline` (loop time), or when `abort` fires
        or the command ends, is withdrawn.
        """
        delivered = 0
        abort.add_callback(self._wake.set)
        try:
            async with self._lock:
                for piece in _pieces(text):
                    if not await self._write_piece(piece.encode(), deadline, abort):
                        break
                    delivered += len(piece)
        finally:
            abort.remove_callback(self._wake.set)
        return delivered

    async def _write_piece(
        self, block: bytes, deadline: float, abort: AbortSignal
    ) -> bool:
        while self.is_open and not abort.aborted:
            try:
                os.write(self._descriptor, block)
            except BlockingIOError:
                if not await self._writable(deadline):
                    return False
            except BrokenPipeError:
                self.close()
            else:
                return True
        return False

    async def _writable(self, deadline: float) -> bool:
        """Wait until there may be room, or nothing more to wait for."""
        loop = asyncio.get_running_loop()
        self._wake.clear()
        loop.add_writer(self._descriptor, self._wake.set)
        try:
            async with asyncio.timeout_at(deadline):
                await self._wake.wait()
        except TimeoutError:
            return False
        finally:
            if self.is_open:
                loop.remove_writer(self._descriptor)
        return True

    def close(self) -> None:
        """Close it: the command reads end of file."""
        if self.is_open:
            asyncio.get_running_loop().remove_writer(self._descriptor)
            os.close(self._descriptor)
            self._descriptor = -1
            self._wake.set()


def _pieces(text: str) -> Iterator[str]:
    step = _ATOMIC // _CHARACTER_SIZE
    for start in range(0, len(text), step):
        yield text[start : start + step]
