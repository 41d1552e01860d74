"""Background tasks that are held, named, and free of the request that started them."""

from __future__ import annotations

import asyncio
import contextvars
import logging
from collections.abc import Coroutine
from typing import Any

logger = logging.getLogger(__name__)


class TaskSet:
    """Holds tasks until they end; an exception in one is logged, never lost.

    Each runs in an empty context: a task that inherits the context of an HTTP
    request keeps using that request's database thread after it is gone.
    """

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()

    def spawn(
        self, coroutine: Coroutine[Any, Any, Any], name: str
    ) -> asyncio.Task[Any]:
        """Start the coroutine as a task of this set."""
        context = contextvars.Context()
        task = asyncio.get_running_loop().create_task(
            coroutine, name=name, context=context
        )
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if task.cancelled():
            return
        if error := task.exception():
            logger.error("Task %s failed", task.get_name(), exc_info=error)

    async def join(self) -> None:
        """Wait for what runs, however it ends."""
        tasks = [t for t in self._tasks if t is not asyncio.current_task()]
        await asyncio.gather(*tasks, return_exceptions=True)

    async def cancel(self) -> None:
        """Cancel what still runs and wait for its end."""
        tasks = [t for t in self._tasks if t is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
