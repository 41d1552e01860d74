"""The identity of a process that hosts live sessions, alive while its lock is held.

A lock file `PENGUIN_DATA_DIR/run/<owner id>.lock` is flocked for the life of the
process: the kernel releases it however the process ends. Recovery asks the lock,
never a pid or a clock.
"""

from __future__ import annotations

import fcntl
import logging
import os
import secrets
import socket
from pathlib import Path
from typing import IO

from django.conf import settings
from django.utils import timezone

from sessions_app.models import Owner

logger = logging.getLogger(__name__)


class AlreadyServed(Exception):
    """Another server holds this data folder; the text names it."""


class OwnerLock:
    """This process's owner id and the lock that proves it alive."""

    def __init__(self) -> None:
        self.id = f"owner-{secrets.token_hex(8)}"
        self._file: IO[str] | None = None

    def acquire(self) -> None:
        """Take the lock and write the owner's row."""
        path = _lock_path(self.id)
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._file = path.open("w")
        fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        Owner.objects.create(id=self.id, pid=os.getpid(), host=socket.gethostname())

    def release(self) -> None:
        """Give the lock back; the owner's sessions must have been given up before."""
        Owner.objects.filter(id=self.id).update(ended_at=timezone.now())
        if self._file:
            _lock_path(self.id).unlink(missing_ok=True)
            self._file.close()
            self._file = None


class ServerLock:
    """The lock of the one server of an embedded installation."""

    def __init__(self) -> None:
        self._file: IO[str] | None = None

    def acquire(self, address: str) -> None:
        """Take the lock, or raise `AlreadyServed` naming who holds it."""
        path = settings.DATA_DIR / "run" / "server.lock"
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        file = path.open("a+")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.seek(0)
            holder = file.read().strip() or "another process"
            file.close()
            raise AlreadyServed(
                f"The data folder {settings.DATA_DIR} is served already by {holder}. "
                "Stop that server, or give this one another PENGUIN_DATA_DIR."
            ) from None
        file.truncate(0)
        file.write(f"{address} (process {os.getpid()})")
        file.flush()
        self._file = file

    def release(self) -> None:
        """Give the lock back."""
        if self._file:
            self._file.close()
            self._file = None


def is_alive(owner: Owner) -> bool:
    """Return whether the owner's process still holds its lock."""
    path = _lock_path(owner.id)
    try:
        file = path.open("r+")
    except FileNotFoundError:
        return False
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return True
    return False


def bury(owner: Owner) -> None:
    """Note the end of an owner that died without saying so."""
    Owner.objects.filter(pk=owner.pk).update(ended_at=timezone.now())
    _lock_path(owner.id).unlink(missing_ok=True)


def dead_owners() -> list[Owner]:
    """Return the owners that ended without giving their sessions up."""
    return [o for o in Owner.objects.filter(ended_at=None) if not is_alive(o)]


def _lock_path(owner_id: str) -> Path:
    folder: Path = settings.DATA_DIR / "run"
    return folder / f"{owner_id}.lock"
