"""Waits that end when a signal fires, whatever the awaited code does."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from sessions_app.environment.tool import AbortSignal

logger = logging.getLogger(__name__)
CANCEL_S = 0.5  # for a cancelled task to clean up before it is left behind
_left_behind: set[asyncio.Task[Any]] = set()


@contextmanager
def on_abort(signal: AbortSignal, act: Callable[[], None]) -> Iterator[None]:
    """Call `act` when the signal fires, or has fired, inside the block."""
    signal.add_callback(act)
    try:
        yield
    finally:
        signal.remove_callback(act)


async def ends(task: asyncio.Task[Any], signal: AbortSignal, *, grace_s: float) -> bool:
    """Wait for the task; once the signal fired, `grace_s` longer and no more.

    Returns False when the task had to be cancelled; a task that ignores even that is
    left behind and may end whenever it likes.
    """
    watch = asyncio.create_task(signal.wait())
    await asyncio.wait({task, watch}, return_when=asyncio.FIRST_COMPLETED)
    watch.cancel()
    if not task.done():
        await asyncio.wait({task}, timeout=grace_s)
    if task.done():
        return True
    await cancel(task)
    return False


async def cancel(task: asyncio.Task[Any]) -> None:
    """Cancel the task and wait a moment for its clean-up."""
    if task.done():
        return
    task.cancel()
    await asyncio.wait({task}, timeout=CANCEL_S)
    if not task.done():
        logger.warning("%s ignores its cancellation and is left behind", task)
        _left_behind.add(task)
        task.add_done_callback(_forget)
    elif not task.cancelled() and (error := task.exception()) is not None:
        logger.warning("%s failed while it was cancelled: %r", task, error)


def _forget(task: asyncio.Task[Any]) -> None:
    _left_behind.discard(task)
    if not task.cancelled():
        task.exception()  # retrieved, so that asyncio does not complain
