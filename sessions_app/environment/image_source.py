"""Where an image comes from: a file of the workspace, or an http(s) URL."""

from __future__ import annotations

import asyncio
import importlib
import os
import stat
from collections.abc import Awaitable, Collection, Mapping
from pathlib import Path
from typing import Any, TypeVar

from sessions_app.environment.arguments import text_argument
from sessions_app.environment.images import MAX_BYTES, Image, ImageError, too_large
from sessions_app.environment.tool import AbortSignal, ToolError
from sessions_app.environment.web_address import WebAddress, shown

DOWNLOADS = "sessions_app.environment.image_download"
T = TypeVar("T")


class ImageSource:
    """Loads the images of one Environment."""

    def __init__(self, workspace: Path, allowed_hosts: Collection[str] = ()) -> None:
        self._workspace = workspace
        self._allowed_hosts = tuple(allowed_hosts)

    async def load(self, source: str, signal: AbortSignal) -> Image:
        """Return the image; raises `ToolError`, at once when the signal fires."""
        return await promptly(self._load(source), signal)

    async def _load(self, source: str) -> Image:
        address = WebAddress.of(source)
        if address is None:
            return await asyncio.to_thread(self._read, source)
        # Its HTTP client is loaded with the first download, not with the server.
        module = await asyncio.to_thread(importlib.import_module, DOWNLOADS)
        data = await module.Downloader(self._allowed_hosts).fetch(address)
        return await asyncio.to_thread(Image.from_bytes, data, address.shown)

    def _read(self, source: str) -> Image:
        name = shown(source)
        try:
            return Image.from_bytes(self._bytes(source, name), name)
        except ValueError as error:
            raise ImageError(f"{name} is no path: {error}") from error
        except OSError as error:
            raise ImageError(f"{name} cannot be read: {error.strerror}") from error

    def _bytes(self, source: str, name: str) -> bytes:
        workspace = os.path.realpath(self._workspace)
        path = os.path.realpath(self._workspace / source)
        if not _is_below(path, workspace):
            raise ImageError(
                f"{name} lies outside of the workspace {workspace}; only files in it "
                "can be read as images"
            )
        try:
            mode = os.lstat(path).st_mode
        except FileNotFoundError:
            raise ImageError(f"{name} does not exist in the workspace") from None
        if not stat.S_ISREG(mode):
            what = "a directory" if stat.S_ISDIR(mode) else "a device, pipe or link"
            raise ImageError(f"{name} is not a file but {what}")
        with open(path, "rb", opener=_opened) as file:
            # Links may have been changed meanwhile: what counts is what was opened.
            link = f"/proc/self/fd/{file.fileno()}"
            if os.path.lexists(link) and not _is_below(
                os.path.realpath(link), workspace
            ):
                raise ImageError(f"{name} lies outside of the workspace {workspace}")
            length = os.fstat(file.fileno()).st_size
            if length > MAX_BYTES:
                raise too_large(name, length)
            data = file.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise too_large(name)
        return data


def source_argument(arguments: Mapping[str, Any]) -> str:
    """Return the `source` of a call, whatever the configured schema allows."""
    source = text_argument(arguments, "source")
    if not source.strip():
        raise ToolError(
            "source is empty; give the path of an image in the workspace, or an "
            "http(s) URL"
        )
    return source


def _opened(path: str, flags: int) -> int:
    # A pipe that took the file's place meanwhile must not hold the thread.
    return os.open(path, flags | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)


def _is_below(path: str, folder: str) -> bool:
    return Path(path).is_relative_to(folder)


async def promptly(work: Awaitable[T], signal: AbortSignal) -> T:
    """Return what `work` returns; once the signal fires, drop it: `ToolError`."""
    task = asyncio.ensure_future(work)

    def stop() -> None:
        task.cancel()

    signal.add_callback(stop)
    try:
        return await task
    except asyncio.CancelledError:
        running = asyncio.current_task()
        if running is None or running.cancelling() or not signal.aborted:
            raise
        raise ToolError("stopped before it was done") from None
    finally:
        signal.remove_callback(stop)
