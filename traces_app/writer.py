"""Appends messages to Traces: durable before anything acts on them.

Responsibilities: `append` writes inside the caller's transaction; `TraceWriter` is
the road of a running server. It commits in groups without a timer:

1. A submission goes into a queue; the order of submission is the order of `seq`.
2. The writer thread, which owns a database connection, takes what is there, at most
   fifty submissions, and writes them in one transaction.
3. What arrives meanwhile is the next group, so a lone append waits for nobody and
   many share one commit.

A submission whose own part fails (`also`, `after`, a message that cannot be stored)
fails alone. When the database refuses, all of the group get `TraceWriteError`.
`insertion` places and inserts; `integrity` signs.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from queue import Empty, SimpleQueue

from django.db import connections, transaction

from traces_app.group_commit import GroupCommit, Submission, TraceWriteError
from traces_app.insertion import Batch, HeadConflict, draft
from traces_app.integrity import write_checkpoint
from traces_app.models import Trace
from traces_app.omnimessage import OmniMessage
from traces_app.stored_event import StoredEvent

__all__ = ["HeadConflict", "TraceWriteError", "TraceWriter", "append", "create_trace"]

logger = logging.getLogger(__name__)

GROUP_LIMIT = 50  # submissions of one transaction


def create_trace(
    session_id: str,
    *,
    project: str,
    owner: str = "",
    title: str = "",
    parent_session_id: str = "",
) -> Trace:
    """Make the empty record of a session; its first event is the session_meta."""
    return Trace.objects.create(
        session_id=session_id,
        project=project,
        owner=owner,
        title=title,
        parent_session_id=parent_session_id,
    )


def append(
    trace_id: int, messages: Sequence[OmniMessage], *, checkpoint: bool = False
) -> list[StoredEvent]:
    """Append inside the caller's transaction, or in one of its own.

    With `checkpoint` the new head is signed in the same transaction. Raises
    `HeadConflict` when another writer got round the lock of the Trace.
    """
    drafts = [draft(message) for message in messages]
    with transaction.atomic():
        batch = Batch()
        stored = batch.add(trace_id, drafts)
        batch.flush()
        if checkpoint and stored:
            write_checkpoint(trace_id)
    return stored


_Waiting = tuple[Submission, asyncio.Future[list[StoredEvent]]]


class TraceWriter:
    """One per process and event loop; close it with `aclose`."""

    def __init__(self, *, using: str = "default") -> None:
        self._using = using
        self._queue: SimpleQueue[_Waiting | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ended: asyncio.Future[None] | None = None
        self._is_closed = False

    async def append(
        self,
        trace_id: int,
        *messages: OmniMessage,
        also: Callable[[], object] | None = None,
        after: Callable[[list[StoredEvent]], object] | None = None,
        checkpoint: bool = False,
    ) -> list[StoredEvent]:
        """Store all messages in one transaction, in order, and return them stored.

        `also` runs in that transaction before the inserts, `after` after them, both
        in the writer's thread; they may run again when the transaction must be
        repeated. What they raise reaches the caller and undoes this call alone.
        """
        return await self.submit(
            trace_id, *messages, also=also, after=after, checkpoint=checkpoint
        )

    def submit(
        self,
        trace_id: int,
        *messages: OmniMessage,
        also: Callable[[], object] | None = None,
        after: Callable[[list[StoredEvent]], object] | None = None,
        checkpoint: bool = False,
    ) -> asyncio.Future[list[StoredEvent]]:
        """Take the place in the order at once and return what `append` awaits."""
        if self._is_closed:
            raise TraceWriteError("The record is closed: the server is stopping.")
        loop = asyncio.get_running_loop()
        if self._thread is None:
            self._loop = loop
            self._thread = threading.Thread(
                target=self._run, name="trace-writer", daemon=True
            )
            self._thread.start()
        future: asyncio.Future[list[StoredEvent]] = loop.create_future()
        submission = Submission(
            trace_id=trace_id,
            messages=messages,
            also=also,
            after=after,
            checkpoint=checkpoint,
        )
        self._queue.put((submission, future))
        return future

    async def aclose(self) -> None:
        """Write what was submitted, then close the thread and its connection."""
        self._is_closed = True
        if self._thread is None or self._loop is None:
            return
        if self._ended is None:
            self._ended = self._loop.create_future()
            self._queue.put(None)
        await asyncio.shield(self._ended)
        self._thread.join()

    # --- everything below runs in the writer's thread ---

    def _run(self) -> None:
        commit = GroupCommit(self._using)
        is_open = True
        while is_open:
            group: list[_Waiting] = []
            for waiting in self._next_group():
                if waiting is None:
                    is_open = False
                else:
                    group.append(waiting)
            if group:
                commit.write([submission for submission, _ in group])
                self._call(_deliver, group)
        connections.close_all()
        self._call(_set_done, self._ended)

    def _next_group(self) -> Iterator[_Waiting | None]:
        """Wait for one, then take what is there."""
        yield self._queue.get()
        for _ in range(GROUP_LIMIT - 1):
            try:
                yield self._queue.get_nowait()
            except Empty:
                return

    def _call(self, function: Callable[..., None], *arguments: object) -> None:
        assert self._loop is not None
        try:
            self._loop.call_soon_threadsafe(function, *arguments)
        except RuntimeError:
            logger.warning("the event loop ended before the trace writer was closed")


def _deliver(group: list[_Waiting]) -> None:
    """Answer the callers, in the event loop; who was cancelled gets no answer."""
    for submission, future in group:
        if future.done():
            continue
        if submission.error is not None:
            future.set_exception(submission.error)
        else:
            future.set_result(submission.stored)


def _set_done(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
