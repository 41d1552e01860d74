"""Turns what an Environment tells into rows, log and news of one session."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol

from django.utils import timezone

from sessions_app.engine.decision import Recorder
from sessions_app.environment import ProcessChange
from sessions_app.models import CommandSession, ProcessState
from sessions_app.runtime.hub import Hub
from sessions_app.runtime.output_log import OutputLog
from sessions_app.runtime.tasks import TaskSet
from traces_app.omnimessage import event
from traces_app.omnimessage.payloads import ProcessEvicted, ToolCallOutput


class Store(Protocol):
    """Runs a change of rows in one of the record's transactions."""

    async def __call__(self, *, also: Callable[[], None]) -> object: ...


class SessionSink:
    """The OutputSink of a live session; `bindings` says which item a call shows."""

    def __init__(
        self,
        session_id: str,
        *,
        owner_id: str,
        log: OutputLog,
        hub: Hub,
        record: Recorder,
        store: Store,
    ) -> None:
        self._session_id = session_id
        self._record = record
        self._store_rows = store
        self._owner_id = owner_id
        self._log = log
        self._hub = hub
        self._tasks = TaskSet()
        self._changes: list[ProcessChange] = []  # not in the database yet
        self._is_storing = False
        self.bindings: dict[str, tuple[str, int]] = {}

    def bind(self, tool_call_id: str, item_id: str) -> None:
        """Remember from where on the call shows the item."""
        item = self._log.items.get(item_id)
        self.bindings[tool_call_id] = (item_id, item.stop if item else 0)
        self._hub.notify(self._session_id, state=False)

    def write(self, item_id: str, text: str) -> None:
        """Append to the log and wake the watchers at once."""
        self._log.append(item_id, text)
        self._hub.notify(self._session_id, state=False)

    def open_line(self, item_id: str, text: str) -> None:
        """Show the open line when a watcher comes by."""
        self._log.set_open_line(item_id, text)
        self._hub.notify(self._session_id, state=False)

    async def drain(self, item_id: str) -> None:
        """Slow the producer while the disk is behind."""
        await self._log.drain(item_id)

    def process(self, change: ProcessChange) -> None:
        """Keep the command's row true, in the order of the changes.

        They go into the record's own transactions: two writers would wait for each
        other. What comes meanwhile is written next, together.
        """
        self._changes.append(change)
        if not self._is_storing:
            self._is_storing = True
            self._tasks.spawn(self._store(), f"process rows {self._session_id}")

    async def _store(self) -> None:
        try:
            while self._changes:
                changes, self._changes = self._changes, []
                await self._store_rows(also=partial(self._rows, changes))
                for change in changes:
                    await self._stored(change)
                self._hub.notify(self._session_id)
        finally:
            self._is_storing = False

    async def _stored(self, change: ProcessChange) -> None:
        if change.change in ("exited", "evicted"):
            await self._log.finish(change.process_id)
        if change.change == "evicted":
            await self._record(event(ProcessEvicted(process_id=change.process_id)))

    def _rows(self, changes: Sequence[ProcessChange]) -> None:
        started = [c for c in changes if c.change == "started"]
        CommandSession.objects.bulk_create(map(self._new_row, started))
        for change in changes:
            if change.change != "started":
                self._change_row(change)

    def _new_row(self, change: ProcessChange) -> CommandSession:
        return CommandSession(
            process_id=change.process_id,
            session_id=self._session_id,
            owner_id=self._owner_id,
            tool_call_id=change.tool_call_id,
            pid=change.pid,
            start_ticks=change.start_ticks,
            cmd=change.cmd,
            cwd=change.cwd,
        )

    @staticmethod
    def _change_row(change: ProcessChange) -> None:
        rows = CommandSession.objects.filter(process_id=change.process_id)
        if change.change == "backgrounded":
            rows.update(is_background=True)
            return
        state = ProcessState.EXITED
        if change.change == "evicted":
            state = ProcessState.EVICTED
        rows.update(
            state=state,
            exit_code=change.exit_code,
            signal=change.signal or "",
            ended_at=timezone.now(),
        )

    async def settle(self, output: ToolCallOutput) -> None:
        """Let go of an output's log as far as the complete message replaces it."""
        self.bindings.pop(output.tool_call_id, None)
        span = output.details.get("log")
        process_id = output.details.get("process_id")
        if process_id and output.details.get("running") is False:
            ended = CommandSession.objects.filter(pk=process_id)
            await ended.aupdate(exit_told=True)
        if not span:
            await self._log.close(output.tool_call_id)
        elif not output.details.get("running"):
            item = self._log.items.get(span["item"])
            is_whole = item is None or (span["start"], span["stop"]) == (0, item.stop)
            if is_whole and not output.details.get("truncated"):
                await self._log.close(span["item"])
            else:
                await self._log.retire(span["item"])

    async def aclose(self) -> None:
        """Wait for the rows of processes that have ended."""
        await self._tasks.join()
