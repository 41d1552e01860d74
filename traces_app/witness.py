"""The witness file: each checkpoint once more, as a line outside the database.

Who rolls the database back, or drops a session, would have to change this file as
well; kept on another machine or account it convicts even the owner of the database.
"""

from __future__ import annotations

import fcntl
import json
import logging
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from django.conf import settings

logger = logging.getLogger(__name__)
Line = tuple[int, dict[str, Any] | None]  # its number and what it says
_TAIL_BYTES = 16 * 1024  # some thirty lines


def witness_path() -> Path:
    """Return where the lines go."""
    return Path(settings.WITNESS_FILE)


def append(number: int, read: Callable[[int, int], Sequence[str]]) -> None:
    """Write the line of checkpoint `number`, and those before it that are missing.

    `read(after, to)` returns the lines of the checkpoints in between. A failure is
    logged, not raised: the checkpoint is committed, the next one brings the line.
    """
    path = witness_path()
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o600), "rb+") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            tail = _tail(file)
            last = _last_number(tail)
            # A file ahead of the database has seen more than the database holds now.
            # Its lines stay, the new one stands beside them and shows it.
            lines = read(min(last or number, number - 1), number)
            new = [line for line in lines if line.encode() not in tail]
            file.seek(0, os.SEEK_END)
            torn = "\n" if tail[-1] else ""
            file.write((torn + "".join(f"{line}\n" for line in new)).encode())
            file.flush()
            os.fsync(file.fileno())
    except OSError:
        logger.exception("checkpoint %d has no line in %s", number, path)


def lines(path: Path | None = None) -> Iterator[Line]:
    """Yield line number and parsed line, None for one that cannot be read."""
    path = path or witness_path()
    if not path.exists():
        return
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            try:
                value = json.loads(line)
            except ValueError:
                value = None
            yield number, value if isinstance(value, dict) else None


def _tail(file: BinaryIO) -> list[bytes]:
    """Return the last lines; what follows the last newline is the last item."""
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - _TAIL_BYTES))
    return file.read().split(b"\n")


def _last_number(tail: list[bytes]) -> int | None:
    for line in reversed(tail):
        try:
            return int(json.loads(line)["number"])
        except (ValueError, KeyError, TypeError):
            continue
    return None
