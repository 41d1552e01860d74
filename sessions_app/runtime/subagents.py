"""Child sessions of live sessions: made, run and given up as their parent's tools ask.

A child is a session like any other, with a row, a Trace and an owner; people see it
through its own record, so nothing of it is carried through the parent's stream. What
ties the two: the `subagent` event in the parent's Trace, written together with the
child's rows; the mode, which is always the parent's; the status, which shows `waiting`
for both.

A restart: the parent's call was closed as aborted, so a child that worked then is lost
to its parent. A card it waits on stays decidable, and the decision lets the child's
turn go on to its end, in its own session, where people read what came of it. An idle
child stays within its parent's reach.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncGenerator
from functools import partial
from typing import Protocol

from asgiref.sync import sync_to_async

from sessions_app.engine.channel import Channel
from sessions_app.engine.stopping import on_abort
from sessions_app.environment import AbortSignal, ChildWish, ToolError
from sessions_app.environment.child_session import Ending
from sessions_app.environment.tool import Approve
from sessions_app.models import ApprovalRequest, SubagentState
from sessions_app.runtime import child_rows, family, sessions
from sessions_app.runtime.hub import Hub
from sessions_app.runtime.live_session import LiveSession
from sessions_app.runtime.refusal import Refusal
from traces_app.omnimessage import OmniMessage, event
from traces_app.omnimessage.payloads import Subagent

_STATES: dict[Ending, SubagentState] = {
    "released": SubagentState.RELEASED,
    "evicted": SubagentState.EVICTED,
}


class Host(Protocol):
    """What a child needs of the supervisor."""

    is_stopping: bool
    hub: Hub
    starting: defaultdict[str, asyncio.Lock]

    async def open(self, session_id: str) -> LiveSession: ...

    async def run(self, session_id: str, *, aborted: bool = False) -> None: ...

    async def drop(self, session_id: str) -> None: ...


class ChildSpawner:
    """Makes the children of one live session."""

    def __init__(self, host: Host, parent: LiveSession) -> None:
        self._host = host
        self._parent = parent

    async def __call__(self, wish: ChildWish) -> LiveChild:
        """Make rows, Trace and pointer in one transaction; raises `ToolError`."""
        try:
            plan = await sync_to_async(child_rows.plan_child)(
                self._parent.session_id,
                agent=wish.agent_id,
                provider=wish.provider,
                model_id=wish.model_id,
            )
        except Refusal as refusal:
            raise ToolError(f"no subagent was started: {refusal.message}") from refusal
        session_id = sessions.new_session_id()
        pointer = Subagent(session_id=session_id, tool_call_id=wish.tool_call_id)
        make = partial(
            child_rows.create_child, session_id, plan, tool_call_id=wish.tool_call_id
        )
        await self._parent.append(event(pointer), also=make)
        return self.child(session_id)

    def child(self, session_id: str) -> LiveChild:
        """Return the handle of a child that exists."""
        return LiveChild(self._host, session_id)


class LiveChild:
    """A child session as the parent's tools hold it."""

    forwards = False

    def __init__(self, host: Host, session_id: str) -> None:
        self.session_id = session_id
        self._host = host

    async def run(
        self, prompt: str, *, signal: AbortSignal, approve: Approve
    ) -> AsyncGenerator[OmniMessage, None]:
        """Run the prompt as a task and yield its messages; raises what stopped it.

        `approve` is not asked: the child's own desk decides, under the parent's mode.
        """
        if signal.aborted:
            return
        messages: Channel[OmniMessage] = Channel()
        try:
            live = await self._start(prompt, messages)

            def stop() -> None:
                if not self._host.is_stopping:
                    live.interrupt(None)

            with on_abort(signal, stop):
                while (message := await messages.get()) is not None:
                    yield message
            live.listeners.discard(messages)
            if live.trouble:
                raise RuntimeError(live.trouble)
        finally:
            # Recovery tells those apart that were at work when the server stopped.
            if not self._host.is_stopping:
                await self._note(SubagentState.IDLE)

    async def _start(self, prompt: str, messages: Channel[OmniMessage]) -> LiveSession:
        async with self._host.starting[self.session_id]:
            live = await self._host.open(self.session_id)
            await sync_to_async(sessions.enqueue)(
                self.session_id,
                text=prompt,
                images=[],
                user=None,
                queue=False,
                is_busy=live.has_task,
            )
            await self._note(SubagentState.WORKING)
            await live.until_free()
            live.listeners.add(messages)
            await self._host.run(self.session_id)
        return live

    async def _note(self, state: SubagentState) -> None:
        await sync_to_async(family.set_state)(self.session_id, state)
        self._host.hub.notify(self.session_id)

    async def pending_approvals(self) -> int:
        """Return how many of its calls wait for a person."""
        pending = ApprovalRequest.objects.filter(
            session_id=self.session_id, decision=None
        )
        return await pending.acount()

    async def aclose(self, why: Ending) -> None:
        """End its processes and give its row up; the session stays to be read."""
        if self._host.is_stopping:
            return
        if why in _STATES:
            await self._note(_STATES[why])
        await self._host.drop(self.session_id)
