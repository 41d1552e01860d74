"""How the model of a session is asked: requests, their attempts, their end on record."""

from __future__ import annotations

import itertools
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from sessions_app.engine.options import LoopOptions
from sessions_app.engine.retry import Ladder, describe
from sessions_app.engine.tape import Tape
from sessions_app.engine.turn import Answer
from sessions_app.environment.tool import AbortSignal
from sessions_app.llm.client import LLMClient, ModelRequest
from traces_app.omnimessage import OmniMessage, StopReason, event
from traces_app.omnimessage import payloads as p


async def _nothing() -> None:
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequests:
    """The model, what it is told each time, and how often it is tried."""

    llm: LLMClient
    system_prompt: str
    options: LoopOptions
    ladder: Ladder

    def price_of(self, model: str | None) -> Mapping[str, float]:
        """Return the prices of a model, of the session's own for None."""
        name = model or f"{self.llm.provider}/{self.llm.model_id}"
        return self.options.prices.get(name, {})

    def build(
        self,
        messages: Sequence[OmniMessage],
        *,
        attempt: int,
        tools: Sequence[Mapping[str, Any]] = (),
        purpose: Literal["turn", "summary"] = "turn",
    ) -> ModelRequest:
        """Return the request for these messages."""
        return ModelRequest(
            system_prompt=self.system_prompt,
            messages=messages,
            tools=tools,
            purpose=purpose,
            attempt=attempt,
            max_tokens=self.options.max_tokens,
            thinking_level=self.options.thinking_level,
        )

    async def until_answered(
        self,
        once: Callable[[int], Awaitable[Answer]],
        *,
        stop: AbortSignal,
        between: Callable[[], Awaitable[None]] = _nothing,
        first: int = 1,
    ) -> tuple[Answer, int]:
        """Call `once` with 1, 2, … until there is an answer or no use in trying.

        `once` ends with `record_end`. Returns the last answer and the attempts made.
        """
        for attempt in itertools.count(first):
            answer = await once(attempt)
            if self.ladder.is_waiting and not stop.aborted:
                await self.ladder.pause(stop)
                await between()
                if not stop.aborted:
                    continue
            return answer, attempt
        raise AssertionError("attempts are counted without end")

    async def record_end(self, tape: Tape, answer: Answer, attempt: int) -> None:
        """Record `request_end` with the wait before the next attempt, and the usage."""
        wait_s = self.ladder.begin_wait(attempt, answer.error)
        end = p.RequestEnd(
            status=answer.status,
            attempt=attempt if answer.error else None,
            retry_in_ms=None if wait_s is None else round(wait_s * 1000),
            error_message=describe(answer.error) if answer.error else None,
        )
        await tape.record(event(end), *_usage(answer, tape))


def _usage(answer: Answer, tape: Tape) -> list[OmniMessage]:
    if answer.usage is None and answer.status is not StopReason.COMPLETED:
        return []
    return [tape.usage(answer.usage or p.Usage())]
