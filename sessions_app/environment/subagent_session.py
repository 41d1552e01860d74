"""A child agent as its parent's tools see it: in the foreground, then perhaps behind.

Responsibilities: run one task of the child at a time, keep what it says until a call
hands it over, carry its messages with their origin into the parent's stream.

Flow: 1. `start` gives the child a task, which runs on its own from then on. 2. A call
follows it with `follow` until it has ended, the wait is over, or the call is stopped.
3. `report` is what that call tells the model. 4. Between calls the child works on;
its approvals are asked at once, through the callback of the newest call.

How many there may be is `subagent_table`'s matter, what it says `child_answer`'s.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from sessions_app.environment.child_answer import ChildAnswer
from sessions_app.environment.child_session import ChildSession, Ending
from sessions_app.environment.tool import (
    AbortSignal,
    Approve,
    ToolContext,
    ToolResult,
)
from traces_app.omnimessage import OmniMessage, StopReason

logger = logging.getLogger(__name__)

KEPT_MESSAGES = 10_000  # that wait for a call to carry them
STOP_S = 10.0  # for a child to settle what was open when it is stopped


class SubagentSession:
    """One child of one Environment."""

    def __init__(self, child: ChildSession) -> None:
        self._child = child
        self._approve: Approve | None = None
        self.is_background = False  # it has outlived the call that started it
        self.is_polled = False  # a call follows it
        self._answer = ChildAnswer()
        self._is_end_told = True
        self._outbox: deque[OmniMessage] = deque(maxlen=KEPT_MESSAGES)
        self._news = asyncio.Event()
        self._signal = AbortSignal()
        self._task: asyncio.Task[None] | None = None

    @property
    def subagent_id(self) -> str:
        """Return the id the model knows it by: that of the child's session."""
        return self._child.session_id

    @property
    def is_running(self) -> bool:
        """Return whether a task of the child has not ended."""
        return self._task is not None and not self._task.done()

    def start(self, prompt: str, approve: Approve | None) -> None:
        """Let the child work on the prompt; none of its tasks may be running."""
        self._approve = approve
        self._answer.begin()
        self._is_end_told = False
        self._signal = AbortSignal()
        self._task = asyncio.get_running_loop().create_task(
            self._drive(prompt, self._signal), name=f"subagent {self.subagent_id}"
        )
        self._task.add_done_callback(lambda _: self._news.set())

    async def _drive(self, prompt: str, signal: AbortSignal) -> None:
        run = self._child.run(prompt, signal=signal, approve=self._ask)
        try:
            async with aclosing(run) as messages:
                async for message in messages:
                    self._take(message)
        except Exception as error:
            # A child that breaks is one more way for a task to fail.
            logger.warning("subagent %s failed", self.subagent_id, exc_info=True)
            self._answer.failure = str(error) or type(error).__name__

    def _take(self, message: OmniMessage) -> None:
        if not message.origin:
            self._answer.feed(message)
        # Pieces nobody is there to see are superseded by the complete message.
        if self._child.forwards and (self.is_polled or not message.is_partial):
            self._outbox.append(message.with_origin(self.subagent_id))
        self._news.set()

    async def _ask(self, call: OmniMessage) -> Any:
        """Put a call of the child before the parent's callback of this moment."""
        if self._approve is None:
            return "deny"
        return await self._approve(call.with_origin(self.subagent_id))

    async def follow(
        self, *, deadline: float, ctx: ToolContext
    ) -> AsyncGenerator[OmniMessage, None]:
        """Yield the child's messages until its end, the deadline or the call's stop."""
        self.is_polled = True
        if ctx.approve is not None:
            self._approve = ctx.approve
        loop = asyncio.get_running_loop()
        ctx.signal.add_callback(self._news.set)
        try:
            while True:
                while self._outbox:
                    yield self._outbox.popleft()
                if not self.is_running or ctx.signal.aborted:
                    return
                if loop.time() >= deadline:
                    return
                self._news.clear()
                try:
                    async with asyncio.timeout_at(deadline):
                        await self._news.wait()
                except TimeoutError:
                    pass
        finally:
            self.is_polled = False
            ctx.signal.remove_callback(self._news.set)

    async def report(self, ctx: ToolContext) -> tuple[str, ToolResult]:
        """Return what the call says of the child; that counts as told."""
        pending = await self._child.pending_approvals() if self.is_running else 0
        if self.is_running:
            self.is_background = True
            ctx.details.update(self.facts(), pending_approvals=pending)
            note = f"[subagent still running with subagent_id {self.subagent_id}]"
            if pending:
                note += f"\n[pending approvals of the subagent: {pending}]"
            return self._answer.take_all(), ToolResult(note=note)
        ctx.details.update(self.facts())
        is_told, self._is_end_told = self._is_end_told, True
        notes, stop_reason = [], StopReason.COMPLETED
        if self._answer.failure is not None and not is_told:
            text = self._answer.take_all()
            stop_reason = StopReason.FAILED
            notes.append(f"[subagent did not complete: {self._answer.failure}]")
        else:
            text = self._answer.take_answer()
            if not is_told and not self._answer.has_answer:
                notes.append("[subagent ended without a final answer]")
        if self.is_background:
            notes.append(f"[subagent idle with subagent_id {self.subagent_id}]")
        result = ToolResult(stop_reason=stop_reason, note="\n".join(notes) or None)
        return text, result

    def facts(self) -> dict[str, Any]:
        """Return what `details` and lists say; the id only while it can be used."""
        facts: dict[str, Any] = {
            "session_id": self.subagent_id,
            "running": self.is_running,
        }
        if self.is_background:
            facts["subagent_id"] = self.subagent_id
        return facts

    def stop(self) -> None:
        """Have the running task, if any, come to its end."""
        self._signal.abort()

    async def aclose(self, why: Ending) -> None:
        """Stop what runs, wait for its end, and give the child up."""
        self.stop()
        if self._task is not None and not self._task.done():
            await asyncio.wait({self._task}, timeout=STOP_S)
            if not self._task.done():
                logger.warning("subagent %s does not end; cut off", self.subagent_id)
                self._task.cancel()
                await asyncio.wait({self._task}, timeout=1.0)
        await self._child.aclose(why)
