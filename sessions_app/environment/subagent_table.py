"""The children of one Environment: at most so many, idle ones make room, all end."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Mapping
from typing import Any

from sessions_app.environment.child_session import (
    ChildSession,
    ChildWish,
    Ending,
    SpawnChild,
)
from sessions_app.environment.subagent_session import SubagentSession
from sessions_app.environment.tool import ToolError

MAX_SUBAGENTS = 8
MAX_UNUSED_S = 10 * 24 * 3600.0
_NO_PARTNER = (
    "this environment has no partner for {}: it runs without sessions, "
    "so there are no child agents"
)


class SubagentTable:
    """Registers children; a slot is taken before anything is awaited."""

    def __init__(
        self,
        spawn: SpawnChild | None,
        *,
        children: Iterable[ChildSession] = (),
        gone: Mapping[str, str] | None = None,
        max_unused_s: float = MAX_UNUSED_S,
    ) -> None:
        """Register `children` that are idle; `gone` says why others cannot be reached."""
        self._spawn = spawn
        self._gone = dict(gone or {})  # subagent_id: "evicted" or "lost"
        self._max_unused_s = max_unused_s
        self._sessions: dict[str, SubagentSession] = {}
        self._used_at: dict[str, float] = {}
        self._reserved = 0
        self._endings: set[asyncio.Task[None]] = set()
        self._is_closed = False
        for child in children:
            session = SubagentSession(child)
            session.is_background = True
            self._register(session)

    async def make(self, wish: ChildWish) -> SubagentSession:
        """Return a new child that is not started; raises `ToolError`."""
        spawn = self._spawn
        if spawn is None:
            raise ToolError(_NO_PARTNER.format("run_subagent"))
        self._make_room()
        self._reserved += 1
        try:
            making = asyncio.ensure_future(spawn(wish))
            try:
                child = await asyncio.shield(making)
            except asyncio.CancelledError:
                # It is made all the same, and nobody would give it up.
                making.add_done_callback(self._give_up)
                raise
        finally:
            self._reserved -= 1
        session = SubagentSession(child)
        self._register(session)
        if self._is_closed:
            self.release(session)
            raise ToolError("the session is closed; the subagent was not started")
        return session

    def _give_up(self, making: asyncio.Future[ChildSession]) -> None:
        if not making.cancelled() and making.exception() is None:
            self._end(SubagentSession(making.result()), "released")

    def _register(self, session: SubagentSession) -> None:
        self._sessions[session.subagent_id] = session
        self._used_at[session.subagent_id] = time.monotonic()

    def _make_room(self) -> None:
        self._evict_unused()
        if len(self._sessions) + self._reserved < MAX_SUBAGENTS:
            return
        idle = self._idle()
        if not idle:
            raise ToolError(
                f"too many subagents: {MAX_SUBAGENTS} are at work, and there may be no "
                "more at a time; wait for one with input_subagent, then try again"
            )
        self._evict(min(idle, key=self._used_at.__getitem__))

    def _idle(self) -> list[str]:
        return [
            subagent_id
            for subagent_id, session in self._sessions.items()
            if session.is_background
            and not session.is_running
            and not session.is_polled
        ]

    def _evict_unused(self) -> None:
        latest = time.monotonic() - self._max_unused_s
        for subagent_id in self._idle():
            if self._used_at[subagent_id] <= latest:
                self._evict(subagent_id)

    def _evict(self, subagent_id: str) -> None:
        self._gone[subagent_id] = "evicted"
        self._end(self._forget(subagent_id), "evicted")

    def _forget(self, subagent_id: str) -> SubagentSession:
        self._used_at.pop(subagent_id, None)
        return self._sessions.pop(subagent_id)

    def release(self, session: SubagentSession) -> None:
        """Let go of a child that its call does not leave in the background."""
        if session.subagent_id in self._sessions:
            self._end(self._forget(session.subagent_id), "released")

    def find(self, subagent_id: str) -> SubagentSession:
        """Return a child in the background and count that as use.

        Raises `ToolError`; ids never known, evicted and lost get different answers.
        """
        if self._spawn is None:
            raise ToolError(_NO_PARTNER.format("input_subagent"))
        self._evict_unused()
        session = self._sessions.get(subagent_id)
        if session is not None and session.is_background:
            self._used_at[subagent_id] = time.monotonic()
            return session
        reason = self._gone.get(subagent_id)
        if reason is None:
            known = [s.subagent_id for s in self._sessions.values() if s.is_background]
            live = ", ".join(known) or "there are none"
            raise ToolError(
                f"unknown subagent_id {subagent_id!r}; known in this session: {live}"
            )
        raise ToolError(_answer(subagent_id, reason))

    def describe(self) -> list[dict[str, Any]]:
        """Return every registered child; not counted as use."""
        return [
            {**session.facts(), "subagent_id": session.subagent_id}
            for session in self._sessions.values()
        ]

    def stop(self) -> None:
        """Stop what every child does; idle ones stay as they are."""
        for session in self._sessions.values():
            session.stop()

    def _end(self, session: SubagentSession, why: Ending) -> None:
        """Begin the ending; it goes on whoever waits for it."""
        session.stop()
        task = asyncio.get_running_loop().create_task(session.aclose(why))
        self._endings.add(task)
        task.add_done_callback(self._endings.discard)

    async def aclose(self) -> None:
        """End every child; returns when nothing is left."""
        self._is_closed = True
        for subagent_id in tuple(self._sessions):
            self._end(self._forget(subagent_id), "closed")
        while self._endings:
            await asyncio.wait(self._endings)


def _answer(subagent_id: str, reason: str) -> str:
    if reason == "evicted":
        return (
            f"subagent {subagent_id} was evicted: it was idle and made room for "
            "another one; start a new one with run_subagent"
        )
    return (
        f"subagent {subagent_id} was lost: the server restarted while it worked; "
        "what it did until then may have had effects, start a new one with "
        "run_subagent if the work is still needed"
    )
