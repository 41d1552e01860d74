"""Owns the live sessions of this process: opens, continues, stops and recovers them.

Flow: 1. `start` takes the owner lock, recovers what dead owners left, and begins to
look after idle sessions. 2. `open` loads a session once and makes this process its
owner. 3. `go_on` runs a session that has something to do. 4. `stop` ends every task
without settling it, then recovers its own sessions like those of a dead process.

Whoever begins a task, or takes a session from memory, holds the session's `starting`
lock from the look at its row to the deed: two messages never both find it free.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import defaultdict

from asgiref.sync import sync_to_async
from django.conf import settings
from django.utils import timezone

from sessions_app.models import ApprovalRequest, Owner, Session
from sessions_app.runtime import assembly, expiry, recovery
from sessions_app.runtime.hub import Hub
from sessions_app.runtime.live_session import LiveSession
from sessions_app.runtime.owner import OwnerLock, bury, dead_owners, is_alive
from sessions_app.runtime.refusal import Refusal, conflict, not_found
from sessions_app.runtime.subagents import ChildSpawner
from sessions_app.runtime.tasks import TaskSet
from traces_app.omnimessage.payloads import DecisionVia
from traces_app.writer import TraceWriter

logger = logging.getLogger(__name__)

IDLE_S = 900  # a session without task and processes leaves memory after this
LOOK_S = 60


class Supervisor:
    """The one place where sessions become live."""

    def __init__(self, *, via: DecisionVia = "auto") -> None:
        self.via = via  # what the record says of decisions a mode makes here
        self.lock = OwnerLock()
        self.writer = TraceWriter()
        self.hub = Hub(_shared_layer())
        self.live: dict[str, LiveSession] = {}
        self.starting: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._opening: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._tasks = TaskSet()
        self.is_stopping = False

    async def start(self) -> None:
        """Take the lock, recover, and look after sessions from now on."""
        await sync_to_async(self.lock.acquire)()
        await self.recover_dead()
        self._tasks.spawn(self._look_after(), "supervisor")
        self._tasks.spawn(self._expire(), "expiry")

    async def recover_dead(self) -> None:
        """Recover the sessions of every owner whose lock is free."""
        for owner in await sync_to_async(dead_owners)():
            await sync_to_async(recovery.recover_owner)(owner)
            await sync_to_async(bury)(owner)

    async def stop(self) -> None:
        """End everything this process runs; what was open is recovered at once."""
        self.is_stopping = True
        await self._tasks.cancel()
        closing = [live.aclose() for live in self.live.values()]
        for result in await asyncio.gather(*closing, return_exceptions=True):
            if isinstance(result, BaseException):
                logger.error("A session did not close cleanly", exc_info=result)
        self.live.clear()
        await self.writer.aclose()
        await self.hub.aclose()
        owner = await Owner.objects.aget(pk=self.lock.id)
        await sync_to_async(recovery.recover_owner)(owner)
        await sync_to_async(self.lock.release)()

    async def open(self, session_id: str) -> LiveSession:
        """Return the live session, loaded when needed, with its newest config."""
        async with self._opening[session_id]:
            live = self.live.get(session_id)
            if live is None:
                session = await sync_to_async(self._claim)(session_id)
                live = LiveSession(
                    session,
                    owner_id=self.lock.id,
                    writer=self.writer,
                    hub=self.hub,
                    is_running=self.is_running,
                )
            if not live.is_busy:
                await assembly.prepare_live(
                    live,
                    self.lock.id,
                    via=self.via,
                    spawner=ChildSpawner(self, live),
                )
            self.live[session_id] = live
            live.used_at = time.monotonic()
            return live

    async def go_on(self, session_id: str, *, aborted: bool = False) -> None:
        """Run the session if nothing runs there: a queued message or an open turn."""
        async with self.starting[session_id]:
            await self.run(session_id, aborted=aborted)

    async def run(self, session_id: str, *, aborted: bool = False) -> None:
        """Do what `go_on` does, for a caller that holds the `starting` lock."""
        live = await self.open(session_id)
        if not live.is_busy:
            await assembly.record_config(live)
            if not live.is_busy:
                live.run(aborted=aborted)

    async def wake(self, session_id: str) -> None:
        """Let the owner see new rows; without one, take the session up."""
        live = self.live.get(session_id)
        is_heard = live is not None and live.is_busy
        # A task that hears of it records it at once: pages draw that, not this.
        self.hub.notify(session_id, state=not is_heard)
        if is_heard:
            return
        if await sync_to_async(has_news)(session_id):
            try:
                await self.go_on(session_id)
            except Refusal as refusal:
                # Another process runs it, and looks at the rows once a second.
                if refusal.code != "owned_elsewhere":
                    raise

    def is_running(self, session_id: str) -> bool:
        """Return whether a task of the session runs here and has not ended."""
        live = self.live.get(session_id)
        return live is not None and live.has_task

    async def drop(self, session_id: str) -> None:
        """Close a live session and give its row up."""
        async with self._opening[session_id]:
            live = self.live.pop(session_id, None)
            if live:
                await live.aclose()
        rows = Session.objects.filter(pk=session_id, owner_id=self.lock.id)
        await rows.aupdate(owner=None)

    def _claim(self, session_id: str) -> Session:
        """Make this process the owner of the session's row."""
        session = (
            Session.objects.select_related("owner", "project")
            .filter(pk=session_id, deleted_at=None)
            .first()
        )
        if session is None:
            raise not_found(f"The session {session_id}")
        owner = session.owner
        if owner and owner.pk != self.lock.id and is_alive(owner):
            raise conflict(
                "owned_elsewhere",
                f"The session runs in another process ({owner.host}, {owner.pid}).",
            )
        Session.objects.filter(pk=session_id).update(owner_id=self.lock.id)
        return session

    async def _look_after(self) -> None:
        while True:
            await asyncio.sleep(LOOK_S)
            await Owner.objects.filter(pk=self.lock.id).aupdate(
                heartbeat_at=timezone.now()
            )
            await self.recover_dead()
            for session_id in list(self.live):
                async with self.starting[session_id]:
                    if self._is_forgotten(session_id):
                        await self.drop(session_id)

    async def _expire(self) -> None:
        while True:
            await asyncio.sleep(expiry.LOOK_S)
            try:
                for session_id in await sync_to_async(expiry.deny_overdue)():
                    await self.wake(session_id)
            except Exception:
                # A busy database now must not let calls wait for ever later.
                logger.exception("Overdue approval requests were not settled")

    def _is_forgotten(self, session_id: str) -> bool:
        live = self.live.get(session_id)
        if live is None or time.monotonic() - live.used_at <= IDLE_S:
            return False
        return not live.is_in_use


def has_news(session_id: str) -> bool:
    """Return whether a decision waits for its owner to act on it."""
    rows = ApprovalRequest.objects.filter(
        session_id=session_id, decision_recorded=False
    )
    return rows.exclude(decision=None).exists()


def _shared_layer() -> object | None:
    """Return the channel layer when other processes listen to it, else None."""
    if not settings.REDIS_URL:
        return None
    from channels.layers import get_channel_layer  # only where Redis is used

    return get_channel_layer()


_current: Supervisor | None = None


def current() -> Supervisor:
    """Return the supervisor of this process; `start_supervisor` came before."""
    if _current is None:
        raise RuntimeError("No supervisor runs in this process: start one first.")
    return _current


def peek() -> Supervisor | None:
    """Return the supervisor of this process, or None: it may host no sessions."""
    return _current


async def start_supervisor(*, via: DecisionVia = "auto") -> Supervisor:
    """Start this process's supervisor, once."""
    global _current  # the one live state of the process
    if _current is None:
        supervisor = Supervisor(via=via)
        await supervisor.start()
        _current = supervisor
    return _current


async def stop_supervisor() -> None:
    """Stop this process's supervisor, if there is one."""
    global _current
    supervisor, _current = _current, None
    if supervisor:
        await supervisor.stop()
