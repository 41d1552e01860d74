"""The tool calls of one request: one decision, at most one run, one output each."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from sessions_app.engine.decision import Decision
from sessions_app.engine.messages import call_id
from sessions_app.engine.outputs import (
    changed_output,
    interrupted_output,
)
from sessions_app.engine.outputs import (
    denied_output as denied_output,
)
from sessions_app.engine.tape import Tape
from sessions_app.engine.tool_run import ToolRun, Tools, digest_of
from sessions_app.engine.tool_usage import usage_of_tool
from sessions_app.environment.tool import AbortSignal
from traces_app.omnimessage import OmniMessage, event
from traces_app.omnimessage import payloads as p

# Answers soon after the signal fires; its `reason` ("interrupt" or "stream") is then
# the source of the deny.
Decide = Callable[[OmniMessage, AbortSignal], Awaitable[Decision]]


class ToolCalls:
    """Takes calls as they become complete and sees each through, all at once.

    A call runs only after its decision and its `tool_started` are on record; nothing
    but that one record lies between an allow and the start. `on_failure` is called
    when a call cannot be seen through, which means that the record failed.
    """

    def __init__(
        self,
        *,
        tools: Tools,
        decide: Decide,
        tape: Tape,
        stop: AbortSignal,
        stop_grace_s: float,
        on_failure: Callable[[], None],
    ) -> None:
        self._tools = tools
        self._decide = decide
        self._tape = tape
        self._stop = stop
        self._stop_grace_s = stop_grace_s
        self._on_failure = on_failure
        self._settle = AbortSignal()
        self._tasks: list[asyncio.Task[None]] = []

    def __bool__(self) -> bool:
        """Return whether there were any calls."""
        return bool(self._tasks)

    def add(self, call: OmniMessage) -> None:
        """Have the call decided; tasks start in the order of the calls."""
        task = asyncio.create_task(self._see_through(call))
        task.add_done_callback(self._check)
        self._tasks.append(task)

    def settle(self, reason: str) -> None:
        """Have whatever is undecided denied; what runs is not touched."""
        self._settle.abort(reason)

    async def finish(self) -> None:
        """Wait until each call has its output; raises the first failure."""
        await self.wait()
        for task in self._tasks:
            task.result()

    async def wait(self) -> None:
        """Wait until nothing runs any more, whatever became of it."""
        if self._tasks:
            await asyncio.wait(self._tasks)

    def _check(self, task: asyncio.Task[None]) -> None:
        if task.cancelled() or task.exception() is not None:
            self._on_failure()

    async def _see_through(self, call: OmniMessage) -> None:
        decision = await self._decide(call, self._settle)
        decided = event(decision.event)
        news = [] if decision.is_recorded else [decided]
        if decision.is_recorded:
            self._tape.note(decided)
        blocked = self._blocked(call, decision)
        if blocked is not None:
            await self._tape.record(*news, blocked)
            return
        started = p.ToolStarted(tool_call_id=call_id(call))
        await self._tape.record(*news, event(started))
        run = ToolRun(
            call,
            edited=decision.arguments,
            tools=self._tools,
            tape=self._tape,
            grace_s=self._stop_grace_s,
        )
        output = await run.run(self._stop, self._approve)
        await self._tape.record(*usage_of_tool(output, self._tape), output)

    def _blocked(self, call: OmniMessage, decision: Decision) -> OmniMessage | None:
        if decision.event.decision != "allow":
            return denied_output(call, decision.event)
        if self._stop.aborted:
            return interrupted_output(call)
        digest = digest_of(self._tools, call, decision.arguments)
        if digest != decision.event.arguments_sha256:
            return changed_output(call)
        return None

    async def _approve(self, call: OmniMessage) -> Decision:
        """Decide a child's call: its fate hangs on the run, not on this request."""
        return await self._decide(call, self._stop)
