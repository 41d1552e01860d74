"""The agent loop: turns until one has no tool call.

Responsibilities
  - Put every complete message on record before it is shown or acted upon, and yield
    messages in the order of the record, streaming pieces in between.
  - Ask the model, have each call decided once, run what was allowed, pair each call
    with one output.
  - End promptly when stopped, with everything settled that can be settled.

Flow
  1. Close what a crash or a failed record left open; tell what a cut answer produced;
     take in what is to be said; decide and run calls that are still open.
  2. Take in queued messages; compact when the context is full; ask the model.
     Its calls are decided and run while it is still writing.
  3. `request_end` as soon as the stream ends; then wait for all outputs.
  4. A failed request is tried again after a wait, unless trying cannot help.
  5. No calls in the answer, a full turn cap or a stop end the run; a stop's `abort`
     comes last.
  A compaction that a person asked for is a run of its own: steps 1 and the summary.

Neighbours: `turn` reads one stream, `tool_calls` sees calls through, `tape` orders
record and stream, `history` knows what the model sees. Whoever runs the loop makes
the decisions, keeps the record and finds out who is watching.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from functools import partial

from sessions_app.engine.blocks import carry_over_block
from sessions_app.engine.channel import Channel
from sessions_app.engine.decision import Recorder, RecordError
from sessions_app.engine.history import History
from sessions_app.engine.model_requests import ModelRequests
from sessions_app.engine.options import LoopOptions
from sessions_app.engine.retry import Ladder, Sleep, describe
from sessions_app.engine.settlement import restart_denial, settlement
from sessions_app.engine.stopping import on_abort
from sessions_app.engine.tape import Tape
from sessions_app.engine.tool_calls import Decide
from sessions_app.engine.tool_run import Tools
from sessions_app.engine.turns import TakeQueued, Turns
from sessions_app.environment.tool import AbortSignal
from sessions_app.llm.client import LLMClient
from traces_app.omnimessage import OmniMessage, StopReason, event
from traces_app.omnimessage import payloads as p

logger = logging.getLogger(__name__)
_DEFAULTS = LoopOptions()


# Returns why the model must not be asked now, None when it may be.
WhyNot = Callable[[], Awaitable[str | None]]


async def _nothing_queued() -> Sequence[OmniMessage]:
    return ()


async def _nothing_against() -> None:
    return None


class AgentLoop:
    """Runs the tasks of one session, one at a time, over one history."""

    def __init__(
        self,
        *,
        llm: LLMClient,
        environment: Tools,
        system_prompt: str,
        history: History,
        record: Recorder,
        decide: Decide,
        options: LoopOptions = _DEFAULTS,
        take_queued: TakeQueued | None = None,
        why_not: WhyNot = _nothing_against,
        clock: Callable[[], float] = time.monotonic,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self.history = history
        self.outcome: StopReason | None = None  # of the last run, None while it lasts
        self._tools = environment
        self._record = record
        self._decide = decide
        self._take_queued = take_queued or _nothing_queued
        self._why_not = why_not
        self._requests = ModelRequests(
            llm=llm,
            system_prompt=system_prompt,
            options=options,
            ladder=Ladder(options, clock=clock, sleep=sleep),
        )
        self._driver: asyncio.Task[None] | None = None

    @property
    def is_running(self) -> bool:
        """Whether a run has begun and not ended."""
        return self._driver is not None and not self._driver.done()

    def run(
        self, inputs: Sequence[OmniMessage] = (), *, signal: AbortSignal | None = None
    ) -> AsyncGenerator[OmniMessage, None]:
        """Yield everything that happens until the task ends.

        Without inputs the last turn goes on: open calls are decided and run, then
        the model is asked. Closing the generator stops the run like `signal` does.
        Raises `RecordError` when the record fails: everything is stopped then, and
        the history must be folded anew from the record before the next run.
        """
        return self._driven(lambda run: run.work_off(inputs), signal)

    def compact(
        self, *, signal: AbortSignal | None = None
    ) -> AsyncGenerator[OmniMessage, None]:
        """Summarise the conversation into a fresh context; yields like `run`.

        The old context stays when that fails or is stopped. A conversation with
        calls that wait for their outputs is left as it is: the run fails.
        """
        return self._driven(_Run.compact, signal)

    async def _driven(
        self,
        work: Callable[[_Run], Awaitable[None]],
        signal: AbortSignal | None,
    ) -> AsyncGenerator[OmniMessage, None]:
        if self.is_running:
            raise RuntimeError("a run of this session has not ended yet")
        stream: Channel[OmniMessage] = Channel()
        run = _Run(self, stream)
        self.outcome = None
        self._driver = driver = asyncio.create_task(run.drive(work))
        driver.add_done_callback(lambda _: stream.close())
        try:
            with on_abort(signal or AbortSignal(), run.interrupt):
                while (message := await stream.get()) is not None:
                    yield message
        finally:
            run.interrupt()
            stream.close(drop=True)
            await asyncio.wait({driver})
            if not driver.cancelled():
                driver.exception()  # retrieved also when the reader left early
        driver.result()

    def retry_now(self) -> None:
        """End the wait before the next attempt at a failed request."""
        self._requests.ladder.skip()


class _Run:
    """One run of a loop, in a task of its own, so that it always gets to its end."""

    def __init__(self, loop: AgentLoop, stream: Channel[OmniMessage]) -> None:
        self._loop = loop
        self._history = loop.history
        self._stop = AbortSignal()
        self._tape = Tape(
            record=loop._record,
            history=loop.history,
            stream=stream,
            price_of=loop._requests.price_of,
        )
        self._turns = Turns(
            requests=loop._requests,
            tools=loop._tools,
            decide=loop._decide,
            take_queued=loop._take_queued,
            tape=self._tape,
            stop=self._stop,
        )
        self._turns_taken = 0

    def interrupt(self) -> None:
        """Stop everything; `drive` then comes to its end."""
        self._turns.interrupt()

    async def drive(self, work: Callable[[_Run], Awaitable[None]]) -> None:
        """Do the work to its end, whatever that is; raises when the record fails."""
        try:
            await work(self)
            if self._stop.aborted:
                await self._abort(StopReason.ABORTED, "interrupted by the user")
        except Exception as error:
            await self._give_up(error)
            raise
        self._loop.outcome = self._loop.outcome or StopReason.COMPLETED

    async def work_off(self, inputs: Sequence[OmniMessage]) -> None:
        """Take turns until one has no calls."""
        await self._take_inputs(inputs)
        await self._turns.answer_open_calls()
        while await self._has_next_turn():
            await self._turns.compact()
            if not await self._take_turn():
                break

    async def compact(self) -> None:
        """Make a summary of the conversation, and nothing else."""
        await self._settle()
        is_whole = not self._history.open_calls
        if not (is_whole and await self._turns.compact_now()):
            self._loop.outcome = StopReason.FAILED

    async def _settle(self) -> None:
        deny = partial(restart_denial, self._loop._tools)
        if closing := settlement(self._history, deny=deny):
            await self._tape.record(*closing)

    async def _take_inputs(self, inputs: Sequence[OmniMessage]) -> None:
        await self._settle()
        block = carry_over_block(self._history)
        if news := [*([block] if block else []), *inputs]:
            await self._tape.record(*news)
        if not self._history.open_calls and not self._stop.aborted:
            await self._turns.take_queued()
        self._turns_taken = self._history.turns

    async def _has_next_turn(self) -> bool:
        if self._stop.aborted:
            return False
        if 0 < self._loop._requests.options.max_turns <= self._turns_taken:
            await self._say_turn_cap()
            return False
        await self._turns.take_queued()
        if self._history.has_input and (reason := await self._loop._why_not()):
            await self._abort(StopReason.FAILED, reason)
            return False
        return self._history.has_input

    async def _take_turn(self) -> bool:
        """Have the model answer; return whether its answer holds calls."""
        if self._stop.aborted:
            return False
        self._turns_taken += 1
        answer, attempts = await self._turns.take()
        if answer.error is not None and not self._stop.aborted:
            words = describe(answer.error)
            if attempts > 1:
                words = f"the model request failed {attempts} times, at last: {words}"
            await self._abort(StopReason.FAILED, words)
        return answer.status is StopReason.COMPLETED and self._history.has_input

    async def _say_turn_cap(self) -> None:
        limit = self._loop._requests.options.max_turns
        notice = p.Text(
            role="assistant",
            text=f"[reached max turns ({limit}); stopping]",
            synthetic="notice",
            extra={"stop_reason": StopReason.FAILED.value},
        )
        await self._tape.record(OmniMessage(payload=notice))
        self._loop.outcome = StopReason.FAILED

    async def _abort(self, outcome: StopReason, reason: str) -> None:
        await self._tape.record(event(p.Abort(reason=reason)))
        self._loop.outcome = outcome

    async def _give_up(self, error: Exception) -> None:
        """Stop everything and say why, as far as the record allows."""
        self._turns.interrupt("record")
        await self._turns.wait_for_calls()
        self._loop.outcome = StopReason.FAILED
        last = [event(p.Abort(reason=f"the run stopped: {describe(error)}"))]
        if self._history.is_request_open:
            last.insert(0, event(p.RequestEnd(status=StopReason.ABORTED)))
        try:
            await self._tape.record(*last)
        except RecordError as again:
            logger.error("The end of the run is not on record: %s", describe(again))
