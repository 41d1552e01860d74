"""Files that hold the whole output of a call: its head, and a tail that moves along.

A spool keeps the first 8 Mi characters as they come and the last 8 Mi behind them;
what lies between is counted and named in the file. Small output stays in memory until
somebody asks for the file. Trouble with the disk never changes the outcome of a call:
then there is no artifact.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import shutil
import tempfile
import uuid
import weakref
from collections import deque
from collections.abc import Callable
from pathlib import Path

from sessions_app.environment.tool import Artifact

logger = logging.getLogger(__name__)

HEAD_LENGTH = 8 * 1024 * 1024  # characters
TAIL_LENGTH = 8 * 1024 * 1024  # characters
_IN_MEMORY = 256 * 1024  # characters; less is written only when it is asked for


def new_stem(kind: str) -> str:
    """Return a new id such as "proc-1a2b3c4d", which is also a file's stem."""
    return f"{kind}-{uuid.uuid4().hex[:8]}"


class ArtifactFolder:
    """Where the spools of one Environment lie; made when the first needs it."""

    def __init__(self, directory: Path | None) -> None:
        self._given = directory
        self._remove_own: Callable[[], object] | None = None
        self._own: Path | None = None
        self._is_gone = False

    @property
    def path_length(self) -> int:
        """Return how long a path in here is."""
        given = self._given.absolute() if self._given else None
        folder = given or Path(tempfile.gettempdir()) / "penguin-12345678"
        return len(str(folder / f"{new_stem('proc')}.txt"))

    def new_file(self, stem: str) -> Path:
        """Create an empty file that only this user can read."""
        path = self._directory() / f"{stem}.txt"
        path.touch(mode=0o600, exist_ok=False)
        return path

    def _directory(self) -> Path:
        if self._given is not None:
            self._given.mkdir(mode=0o700, parents=True, exist_ok=True)
            return self._given.absolute()
        if self._is_gone:
            raise FileNotFoundError("the private folder is removed already")
        if self._own is None:
            self._own = Path(tempfile.mkdtemp(prefix="penguin-"))
            self._remove_own = weakref.finalize(
                self, shutil.rmtree, self._own, ignore_errors=True
            )
        return self._own

    def remove_own(self) -> None:
        """Delete the private folder; a given one is its owner's to delete."""
        self._is_gone = True
        if self._remove_own is not None:
            self._remove_own()
            self._own = self._remove_own = None


class Spool:
    """The whole text of one output log, as far as it is kept."""

    def __init__(self, folder: ArtifactFolder, stem: str) -> None:
        self._folder = folder
        self._stem = stem
        self._path: Path | None = None
        self._is_broken = False
        self._is_named = False  # somebody was told the path
        self._waiting: list[str] = []  # head that is not in the file yet
        self._waiting_length = 0
        self._room = HEAD_LENGTH
        self._head_size = 0  # bytes in the file
        self._head_hash = hashlib.sha256()
        self._tail: deque[str] = deque()
        self._tail_length = 0
        self._dropped = 0  # characters that fell out of the tail

    def write(self, text: str) -> None:
        """Append `text`."""
        if self._is_broken:
            return
        if self._room:
            head, text = text[: self._room], text[self._room :]
            self._room -= len(head)
            self._waiting.append(head)
            self._waiting_length += len(head)
            if self._waiting_length >= _IN_MEMORY:
                self._flush_head()
        if text:
            self._tail.append(text)
            self._tail_length += len(text)
            while self._tail_length - len(self._tail[0]) >= TAIL_LENGTH:
                gone = len(self._tail.popleft())
                self._tail_length -= gone
                self._dropped += gone

    async def artifact(self) -> Artifact | None:
        """Bring the file up to date and describe it; None where that fails."""
        self._flush_head()
        if self._is_broken or self._path is None:
            return None
        self._is_named = True
        if not self._tail:
            digest = self._head_hash.hexdigest()
            return Artifact(path=self._path, size=self._head_size, sha256=digest)
        try:
            return await asyncio.to_thread(self._write_tail, list(self._tail))
        except OSError:
            logger.warning("output could not be kept in a file", exc_info=True)
            return None

    def discard(self) -> None:
        """Forget everything; the file goes too unless somebody knows its path."""
        self._is_broken = True
        self._waiting.clear()
        self._tail.clear()
        if self._path is not None and not self._is_named:
            self._path.unlink(missing_ok=True)

    def _flush_head(self) -> None:
        if self._is_broken or (self._path is not None and not self._waiting):
            return
        block = "".join(self._waiting).encode()
        self._waiting.clear()
        self._waiting_length = 0
        try:
            if self._path is None:
                self._path = self._folder.new_file(self._stem)
            with self._path.open("ab") as file:
                file.write(block)
        except OSError:
            logger.warning("output could not be kept in a file", exc_info=True)
            self._is_broken = True
            return
        self._head_hash.update(block)
        self._head_size += len(block)

    def _write_tail(self, parts: list[str]) -> Artifact:
        """Write what follows the head; runs in a thread, it may be many MiB."""
        path, digest, missing = self._path, self._head_hash.copy(), self._dropped
        assert path is not None
        too_many = max(sum(map(len, parts)) - TAIL_LENGTH, 0)
        missing += too_many
        parts[0] = parts[0][too_many:]
        if missing:
            parts.insert(0, f"\n[{missing} characters missing here]\n")
        with path.open("r+b") as file:
            file.seek(self._head_size)
            for part in parts:
                block = part.encode()
                digest.update(block)
                file.write(block)
            file.truncate()
            size = file.tell()
        return Artifact(
            path=path, size=size, sha256=digest.hexdigest(), missing=missing
        )
