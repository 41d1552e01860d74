"""The turns of one run: ask until there is an answer, see its calls through."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from sessions_app.engine.blocks import retry_block
from sessions_app.engine.compaction import compact, why_compact
from sessions_app.engine.mending import images_note, is_too_long
from sessions_app.engine.model_requests import ModelRequests
from sessions_app.engine.tape import Tape
from sessions_app.engine.tool_calls import Decide, ToolCalls
from sessions_app.engine.tool_run import Tools
from sessions_app.engine.turn import Answer, ask
from sessions_app.environment.tool import AbortSignal
from sessions_app.llm.client import LLMError
from traces_app.omnimessage import OmniMessage, StopReason, event
from traces_app.omnimessage import payloads as p

# Returns user messages that are on record already.
TakeQueued = Callable[[], Awaitable[Sequence[OmniMessage]]]


class Turns:
    """Knows the calls that are under way and how to stop them."""

    def __init__(
        self,
        *,
        requests: ModelRequests,
        tools: Tools,
        decide: Decide,
        take_queued: TakeQueued,
        tape: Tape,
        stop: AbortSignal,
    ) -> None:
        self._requests = requests
        self._tools = tools
        self._decide = decide
        self._take_queued = take_queued
        self._tape = tape
        self._stop = stop
        self._calls = self._no_calls()
        self._may_compact = True

    def interrupt(self, reason: str = "interrupt") -> None:
        """Stop the stream, the wait, the tools; have what is undecided denied."""
        self._stop.abort(reason)
        self._calls.settle("interrupt")

    async def wait_for_calls(self) -> None:
        """Wait until nothing runs any more; never raises."""
        await self._calls.wait()

    async def answer_open_calls(self) -> None:
        """Decide and run what the last answer left open."""
        for call in self._tape.history.open_calls:
            self._calls.add(call)
        await self._calls.finish()

    async def take_queued(self) -> None:
        """Let the next request carry what was written meanwhile."""
        self._tape.note(*await self._take_queued())

    async def compact(self) -> None:
        """Make room when the context is full; one failure is enough for a run."""
        window = self._requests.llm.context_window
        reason = why_compact(self._tape.history, self._requests.options, window)
        if reason is not None:
            await self._compact(reason)

    async def compact_now(self) -> bool:
        """Make room because a person asks for it; return whether there is now."""
        return await self._compact("manual")

    async def take(self) -> tuple[Answer, int]:
        """Return the answer to the history's input and the attempts it took."""
        answer, attempts = await self._ask(first=1)
        while answer.error is not None and await self._mend(answer.error):
            answer, attempts = await self._ask(first=attempts + 1)
        return answer, attempts

    async def _ask(self, *, first: int) -> tuple[Answer, int]:
        return await self._requests.until_answered(
            self._attempt, stop=self._stop, between=self._prepare_retry, first=first
        )

    async def _mend(self, error: LLMError) -> bool:
        """Change the request that was refused; return whether that is done."""
        if self._stop.aborted:
            return False
        if note := images_note(self._tape.history, error):
            await self._tape.record(note)
            is_changed = True
        else:
            is_changed = is_too_long(error) and await self._compact("too_long")
        if is_changed:
            await self._prepare_retry()
        return is_changed

    async def _attempt(self, attempt: int) -> Answer:
        """Make one request; its calls have their outputs on return."""
        self._calls = self._no_calls()
        tools = tuple(self._tools.tool_list())
        begin = [event(p.RequestBegin(attempt=attempt))]
        if tools != self._tape.history.tools:
            begin.insert(0, event(p.ToolListReady(tools=tools)))
        await self._tape.record(*begin)
        answer = await ask(
            self._requests.llm,
            self._requests.build(
                self._tape.history.messages, attempt=attempt, tools=tools
            ),
            tape=self._tape,
            stop=self._stop,
            on_call=self._calls.add,
        )
        await self._requests.record_end(self._tape, answer, attempt)
        if answer.status is not StopReason.COMPLETED:
            self._calls.settle("stream")
        await self._calls.finish()
        return answer

    async def _compact(self, reason: str) -> bool:
        if not (self._may_compact and self._tape.history.conversation):
            return False
        self._may_compact = await compact(
            reason, requests=self._requests, tape=self._tape, stop=self._stop
        )
        return self._may_compact

    async def _prepare_retry(self) -> None:
        if self._stop.aborted:
            return
        if block := retry_block(self._tape.history):
            await self._tape.record(block)
        await self.take_queued()

    def _no_calls(self) -> ToolCalls:
        calls = ToolCalls(
            tools=self._tools,
            decide=self._decide,
            tape=self._tape,
            stop=self._stop,
            stop_grace_s=self._requests.options.stop_grace_s,
            on_failure=self.interrupt,
        )
        if self._stop.aborted:
            calls.settle("interrupt")
        return calls
