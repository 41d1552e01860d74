"""The pump of one live session: runs tasks, keeps the record, feeds the watchers.

Responsibilities: exactly one task at a time; every complete message is on record
before anybody sees it; streaming pieces go to the output log; whoever watches is
woken. Flow of a task: 1. A message is a queued row first. 2. The loop takes it (row gone
and text recorded in one transaction) and yields messages. 3. Pieces of text are
appended to their item; complete messages were recorded by `SessionRecorder` before
they came. 4. At the end one transaction writes the checkpoint and `idle`, or finds
another queued row and goes on.

Who may start or stop a task is the supervisor's matter; what a call may do, the
desk's; what a watcher sees, the viewer's.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections import deque
from collections.abc import Callable
from functools import partial
from itertools import chain, repeat

from asgiref.sync import sync_to_async

from sessions_app.engine import AgentLoop
from sessions_app.engine.channel import Channel
from sessions_app.engine.decision import RecordError
from sessions_app.environment import AbortSignal, Environment
from sessions_app.llm.client import LLMClient
from sessions_app.models import QueuedMessage, Session
from sessions_app.runtime import family
from sessions_app.runtime.approvals import ApprovalDesk
from sessions_app.runtime.hub import Hub
from sessions_app.runtime.items import ItemNames
from sessions_app.runtime.message_queue import MessageQueue, back_to_draft
from sessions_app.runtime.output_log import OutputLog
from sessions_app.runtime.recorder import SessionRecorder
from sessions_app.runtime.session_sink import SessionSink
from sessions_app.runtime.tasks import TaskSet
from traces_app.omnimessage import OmniMessage, StopReason
from traces_app.omnimessage.payloads import (
    RequestBegin,
    ToolCallOutput,
)
from traces_app.reader import StoredEvent
from traces_app.writer import TraceWriteError, TraceWriter

logger = logging.getLogger(__name__)

COUNTED = frozenset({"approval_request", "approval_decision"})  # of a project
# Until the disk has room again the row says that a task runs: the last one repeats.
END_WAITS_S = (0.0, 0.5, 2.0, 5.0)
RECENT_BYTES = 8 * 1024 * 1024  # an event with an image has megabytes
RECENT = 256  # events kept for watchers, so that a live one needs no query


class LiveSession:
    """A session that is loaded in this process."""

    def __init__(
        self,
        session: Session,
        *,
        owner_id: str,
        writer: TraceWriter,
        hub: Hub,
        is_running: family.IsRunning,
    ) -> None:
        self.session_id: str = session.pk
        self.is_running = is_running  # of any session of this process
        self.trace_id: int = session.trace_id
        self._project_topic = f"project:{session.project.slug}"
        self.writer = writer
        self.hub = hub
        self.log = OutputLog(self.session_id)
        self.record = SessionRecorder(
            self.session_id, append=self.append, on_decided=self._show_answered
        )
        self.queue = MessageQueue(self.session_id, append=self.append)
        self.sink = SessionSink(
            self.session_id,
            owner_id=owner_id,
            log=self.log,
            hub=hub,
            record=self.record,
            store=partial(writer.append, self.trace_id),
        )
        self.recent: deque[StoredEvent] = deque(maxlen=RECENT)
        self.environment: Environment | None = None
        self.desk: ApprovalDesk | None = None
        self.loop: AgentLoop | None = None
        self.client: LLMClient | None = None
        self.config_version: dict[str, int] = {}
        self.trouble: str = ""  # why the last task stopped without a record of it
        self.outcome: StopReason | None = None  # of the last task
        self.used_at = time.monotonic()
        self.has_task = False  # False as soon as the row says that it has ended
        self.listeners: set[Channel[OmniMessage]] = set()  # of the running task
        self._is_closing = False
        self._is_free = asyncio.Event()
        self._is_free.set()
        self._names = ItemNames()  # in record order
        self._piece_names = ItemNames()  # in the order the loop yields
        self._request_seqs: deque[int] = deque()  # recorded, not yet yielded
        self._signal: AbortSignal | None = None
        self._tasks = TaskSet()

    @property
    def is_busy(self) -> bool:
        """Return whether a task runs."""
        return self._signal is not None

    @property
    def is_in_use(self) -> bool:
        """Return whether something runs here: a task, a command, a subagent."""
        env = self.environment
        found = [*env.processes(), *env.subagents()] if env else []
        return self.is_busy or any(row["running"] for row in found)

    def run(self, *, aborted: bool = False, compacts: bool = False) -> None:
        """Work off what is queued, or go on with a turn that came back.

        `compacts`: make room in the context first, and work off what came meanwhile.
        """
        self.trouble, self.outcome = "", None
        self._is_free.clear()
        self.has_task = True
        self._signal = AbortSignal()
        if aborted:
            self._signal.abort()
        pump = self._pump(self._signal, compacts=compacts)
        self._tasks.spawn(pump, f"task {self.session_id}")

    async def until_free(self) -> None:
        """Wait for a task that has written `idle` already to be gone altogether."""
        await self._is_free.wait()

    def interrupt(self, username: str | None) -> bool:
        """Stop the running task; False when none runs."""
        if self._signal is None:
            return False
        if self.desk and not self._signal.aborted:
            self.desk.stopped_by = username
        self._signal.abort()
        return True

    async def append(
        self,
        *messages: OmniMessage,
        also: Callable[[], None] | None = None,
        checkpoint: bool = False,
    ) -> list[StoredEvent]:
        """Record messages and rows in one transaction; raises `RecordError`."""
        if self._is_closing:
            raise RecordError("The server stops.")
        try:
            stored = await self.writer.append(
                self.trace_id, *messages, also=also, checkpoint=checkpoint
            )
        except TraceWriteError as error:
            raise RecordError(str(error)) from error
        for event in stored:
            await self._recorded(event)
        self.hub.notify(self.session_id)
        if any(event.kind in COUNTED for event in stored):
            self.hub.notify(self._project_topic)
        return stored

    def _show_answered(self) -> None:
        """Let the status follow a decision; no call waits for that."""
        self._tasks.spawn(self._follow_decision(), f"status {self.session_id}")

    async def _follow_decision(self) -> None:
        await sync_to_async(family.show_decided)(
            self.session_id, is_running=self.is_running
        )
        self.hub.notify(self.session_id)
        self.hub.notify(self._project_topic)

    async def _recorded(self, event: StoredEvent) -> None:
        if self.recent and event.seq != self.recent[-1].seq + 1:
            self.recent.clear()  # another process wrote in between
        self.recent.append(event)
        while len(self.recent) > 1 and sum(e.size for e in self.recent) > RECENT_BYTES:
            self.recent.popleft()  # watchers that are so far behind read the record
        item = self._names.of_complete(event.message, event.seq)
        payload = event.message.payload
        if isinstance(payload, RequestBegin):
            self._request_seqs.append(event.seq)
        if isinstance(payload, ToolCallOutput):
            await self.sink.settle(payload)
        elif item and item in self.log.items:
            await self.log.close(item)

    async def _pump(self, signal: AbortSignal, *, compacts: bool) -> None:
        goes_on = True
        while goes_on:
            try:
                await self._run_loop(signal, compacts=compacts)
            except RecordError as error:
                self.trouble = str(error)
                logger.error("Task of %s stopped: %s", self.session_id, error)
            except Exception:
                # The person must see that the task ended, and can go on.
                self.trouble = "The task stopped on an internal error; see the log."
                logger.exception("Task of %s failed", self.session_id)
            goes_on, compacts = await self._end_of_task(signal), False
        if self.trouble:
            self.outcome = StopReason.FAILED
            self.loop = None  # its history may be ahead of the record: fold it anew
        self._signal, self.has_task = None, False
        self._dismiss_listeners()
        self._is_free.set()
        self.used_at = time.monotonic()
        self.hub.notify(self.session_id)
        self.hub.notify(self._project_topic)

    async def _run_loop(self, signal: AbortSignal, *, compacts: bool) -> None:
        assert self.loop is not None
        work = self.loop.compact if compacts else self.loop.run
        async with contextlib.aclosing(work(signal=signal)) as messages:
            async for message in messages:
                for listener in self.listeners:
                    listener.put(message)
                if message.is_partial:
                    self._take_piece(message)
                    continue
                seq = 0
                if isinstance(message.payload, RequestBegin):
                    seq = self._request_seqs.popleft()
                self._piece_names.of_complete(message, seq)
        self.outcome = self.loop.outcome

    def _take_piece(self, message: OmniMessage) -> None:
        payload = message.payload
        named = self._piece_names.of_piece(message)
        text = getattr(payload, "text", "") or getattr(payload, "thinking", "")
        if named and text:
            self.log.append(named[0], text, named[1])
            self.hub.notify(self.session_id, state=False)

    async def _end_of_task(self, signal: AbortSignal) -> bool:
        """Write the checkpoint and `idle`; True when a queued message came first."""
        goes_on = False

        def store() -> None:
            nonlocal goes_on
            rows = Session.objects.select_for_update().filter(pk=self.session_id)
            rows.first()
            queued = QueuedMessage.objects.filter(session_id=self.session_id)
            goes_on = queued.exists() and not (signal.aborted or self.trouble)
            if goes_on:
                return
            if signal.aborted:
                back_to_draft(self.session_id)
            self.has_task = False
            # After a failed record a card may still be open: it stays decidable.
            family.show_ended(self.session_id, is_running=self.is_running)

        for wait_s in chain(END_WAITS_S, repeat(END_WAITS_S[-1])):
            if self._is_closing:
                return False
            await asyncio.sleep(wait_s)
            try:
                await self.writer.append(self.trace_id, also=store, checkpoint=True)
            except TraceWriteError as error:
                logger.error("End of task of %s: %s", self.session_id, error)
                self.hub.notify(self.session_id)
                continue
            return goes_on
        return False

    def _dismiss_listeners(self) -> None:
        while self.listeners:
            self.listeners.pop().close()

    async def aclose(self) -> None:
        """Stop at once, without settling anything: recovery does that.

        From here on nothing is recorded and no pending card is answered, so that
        the Trace reads as if the process had been killed.
        """
        self._is_closing = True
        if self.desk:
            self.desk.is_closed = True
            self.hub.notify(self.session_id)
        await self._tasks.cancel()
        self._dismiss_listeners()
        if self.environment:
            await self.environment.aclose()
        await self.sink.aclose()
        await self.log.aclose()
        if self.client:
            await self.client.aclose()
