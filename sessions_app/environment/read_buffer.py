"""One buffer per thread that pipes are read into, and a look at what came.

Memory that is used again and again stays in the processor's cache, and the C library
tells at gigabytes per second whether a block needs a closer look. Python's own means
would take longer for that than for everything else together.
"""

from __future__ import annotations

import ctypes
import os
import threading
import time

SIZE = 1024 * 1024  # bytes: the most a pipe of an ordinary user holds

_FLOOD = 16 * 1024  # bytes in one read: more is on its way
_PLENTY = 512 * 1024  # bytes in one read: worth the work as they are
_MOMENT_S = 0.00005

_strcspn = ctypes.CDLL(None).strcspn
_strcspn.argtypes = (ctypes.c_void_p, ctypes.c_char_p)
_strcspn.restype = ctypes.c_size_t

# All of ASCII but tab and newline. Sets of at most sixteen are fast; NUL stops each
# search.
_CONTROLS = bytes([*range(1, 9), *range(11, 32), 127])
_SETS = (_CONTROLS[:16], _CONTROLS[16:])


class ReadBuffer:
    """Memory for one read at a time: what came has to be used up before the next."""

    def __init__(self) -> None:
        memory = bytearray(SIZE + 1)  # a NUL behind the block ends the search
        self._memory = memory
        self._view = memoryview(memory)
        self._places = [self._view[:SIZE]]
        self._address = ctypes.addressof(ctypes.c_char.from_buffer(memory))

    def read(self, descriptor: int) -> memoryview:
        """Return what can be read, empty at the end; raises BlockingIOError."""
        size = os.readv(descriptor, self._places)
        if size >= _FLOOD:
            size = self._read_on(descriptor, size)
        self._memory[size] = 0
        return self._view[:size]

    def _read_on(self, descriptor: int, size: int) -> int:
        """Take what else comes of a flood; return how much it is in all.

        A reader that is faster than its writer gets little at a time, which costs both
        more than all the rest. The wait is shorter than any timer of the loop can be.
        """
        if size < _PLENTY:
            time.sleep(_MOMENT_S)
        while size < SIZE:
            try:
                more = os.readv(descriptor, [self._view[size:SIZE]])
            except BlockingIOError:
                break
            if not more:
                break  # the next read finds the end again
            size += more
        return size

    def is_free_of_controls(self, size: int) -> bool:
        """Tell of the last block, so many bytes long, as far as it is ASCII."""
        return all(_strcspn(self._address, chars) == size for chars in _SETS)


class _PerThread(threading.local):
    def __init__(self) -> None:
        self.buffer = ReadBuffer()


_per_thread = _PerThread()


def read_buffer() -> ReadBuffer:
    """Return the buffer of the calling thread."""
    return _per_thread.buffer
