"""Keeps the threads of HTTP requests, and with them their database connections.

Django gives each request a thread of its own and ends it afterwards: a new thread and
a new connection cost more than most requests. Here a request borrows a thread that
another one used before; two requests at the same time never share one.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

from asgiref.sync import ThreadSensitiveContext

from penguin_web.proxy import Application, Scope

IDLE_THREADS = 8  # kept for the next requests; those of a rush end with it


class RequestThreads:
    """Runs the synchronous parts of each request on a borrowed thread."""

    def __init__(self, application: Application) -> None:
        self._application = application
        self._idle: list[ThreadPoolExecutor] = []

    async def __call__(self, scope: Scope, receive: Any, send: Any) -> None:
        """Serve one request."""
        thread = self._idle.pop() if self._idle else _new_thread()
        try:
            async with ThreadSensitiveContext(executor=thread):
                await self._application(scope, receive, send)
        finally:
            if len(self._idle) < IDLE_THREADS:
                self._idle.append(thread)
            else:
                thread.shutdown(wait=False)


def _new_thread() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max_workers=1, thread_name_prefix="request")
