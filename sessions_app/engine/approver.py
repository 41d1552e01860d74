"""Turns the plain approval callback of a Python program into full decisions."""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import dataclass

from sessions_app.engine.decision import Approve, Decision
from sessions_app.engine.messages import call_id
from sessions_app.engine.stopping import ends
from sessions_app.engine.tool_run import Tools, digest_of
from sessions_app.environment.tool import AbortSignal
from traces_app.omnimessage import OmniMessage
from traces_app.omnimessage import payloads as p

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Approver:
    """Asks `approve` about each call; denies whatever it does not clearly allow.

    A callback that has not answered when the run is stopped, or when the model's
    stream is cut, is cancelled and the call is denied.
    """

    approve: Approve | None
    tools: Tools

    async def decide(self, call: OmniMessage, signal: AbortSignal) -> Decision:
        """Return the decision; one that the callback made itself goes through."""
        if self.approve is None:
            return self._deny(call, source="policy")
        began = time.monotonic()
        asking = asyncio.create_task(_answer(self.approve, call))
        has_answered = await ends(asking, signal, grace_s=0)
        waited_ms = round((time.monotonic() - began) * 1000)
        if not has_answered or asking.cancelled():
            source: p.DecisionSource = (
                "stream" if signal.reason == "stream" else "interrupt"
            )
            return self._deny(call, source=source, waited_ms=waited_ms)
        if (error := asking.exception()) is not None:
            logger.error("The approval callback failed", exc_info=error)
            reason = f"the approval callback failed with {type(error).__name__}"
            return self._deny(call, reason=reason, waited_ms=waited_ms)
        answer = asking.result()
        if isinstance(answer, Decision):
            return answer
        return self._from_user(call, is_allowed=answer == "allow", waited_ms=waited_ms)

    def _from_user(
        self, call: OmniMessage, *, is_allowed: bool, waited_ms: int
    ) -> Decision:
        event = p.ApprovalDecision(
            decision="allow" if is_allowed else "deny",
            tool_call_id=call_id(call),
            source="user",
            via="api",
            waited_ms=waited_ms,
            arguments_sha256=digest_of(self.tools, call),
        )
        return Decision(event=event)

    def _deny(
        self,
        call: OmniMessage,
        *,
        source: p.DecisionSource = "policy",
        reason: str | None = None,
        waited_ms: int = 0,
    ) -> Decision:
        event = p.ApprovalDecision(
            decision="deny",
            tool_call_id=call_id(call),
            source=source,
            via="auto",
            reason=reason,
            waited_ms=waited_ms,
            arguments_sha256=digest_of(self.tools, call),
        )
        return Decision(event=event)


async def _answer(approve: Approve, call: OmniMessage) -> object:
    return await approve(call)
