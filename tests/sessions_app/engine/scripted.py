"""A scripted model, tools under a test's control, and a record to look at."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from dataclasses import dataclass, field

from sessions_app.engine import (
    Decision,
    RecordError,
)
from sessions_app.engine.messages import call_id
from sessions_app.engine.tool_run import digest_of
from sessions_app.llm.client import ModelRequest
from sessions_app.llm.pieces import CallPart, TextPart
from traces_app.omnimessage import OmniMessage, StopReason, tool_call_output
from traces_app.omnimessage import payloads as p

Step = OmniMessage | p.Usage | BaseException | asyncio.Event | Awaitable[object]


def say(text: str) -> list[OmniMessage]:
    """The pieces of a streamed text and the complete message."""
    part = TextPart("text")
    return [*part.delta(text), *part.close()]


def half(text: str) -> list[OmniMessage]:
    """A text that never gets its end."""
    return TextPart("text").delta(text)


def think(text: str) -> list[OmniMessage]:
    part = TextPart("thinking")
    return [*part.delta(text), *part.close()]


def call(name: str, arguments: str = "{}", wire_id: str = "c1") -> list[OmniMessage]:
    part = CallPart(tool_call_id=wire_id, name=name)
    return [part.start(), *part.delta(arguments), *part.close()]


def half_call(name: str, arguments: str, wire_id: str = "c1") -> list[OmniMessage]:
    """A call whose arguments never end."""
    part = CallPart(tool_call_id=wire_id, name=name)
    return [part.start(), *part.delta(arguments)]


def usage(cache_read: int = 0, cache_write: int = 0, output: int = 0) -> p.Usage:
    total = cache_read + cache_write + output
    return p.Usage(
        cache_read=cache_read, cache_write=cache_write, output=output, total=total
    )


class ScriptedModel:
    """Plays one list of steps per request: messages, waits, errors.

    A callable in place of a list gets the request; after the last script the model
    says "done".
    """

    provider = "scripted"
    model_id = "scripted"
    is_vision = True

    def __init__(
        self,
        *scripts: Iterable[Step] | Callable[[ModelRequest], Iterable[Step]],
        context_window: int = 100_000,
    ) -> None:
        self.scripts = list(scripts)
        self.requests: list[ModelRequest] = []
        self.context_window = context_window
        self.closed = 0

    async def stream(
        self, request: ModelRequest
    ) -> AsyncGenerator[OmniMessage | p.Usage, None]:
        self.requests.append(request)
        script = self.scripts.pop(0) if self.scripts else say("done")
        try:
            for step in script(request) if callable(script) else script:
                if isinstance(step, BaseException):
                    raise step
                if isinstance(step, asyncio.Event):
                    await step.wait()
                elif isinstance(step, OmniMessage | p.Usage):
                    yield step
                    await asyncio.sleep(0)
                else:
                    await step
        finally:
            self.closed += 1

    async def aclose(self) -> None:
        return None


@dataclass
class Tools:
    """Stands in for an Environment where a test needs to hold a tool in its hand.

    `run` maps a name to an async function of the call; what it returns is the output.
    """

    run: dict[str, Callable[[OmniMessage], Awaitable[str]]] = field(
        default_factory=dict
    )
    started: list[str] = field(default_factory=list)
    arguments: list[str] = field(default_factory=list)

    def tool_list(self) -> list[dict[str, object]]:
        return [{"name": name, "description": "", "parameters": {}} for name in "ab"]

    def workdir_of(self, name: str, arguments: str) -> str | None:
        return "/somewhere" if name == "exec_command" else None

    async def execute_tool(self, tool_call, signal=None, approve=None):
        payload = tool_call.payload
        self.started.append(payload.tool_call_id)
        self.arguments.append(payload.arguments)

        def piece(event_type, text="", reason=None):
            return OmniMessage(
                payload=p.PartialToolCallOutput(
                    role="user",
                    event_type=event_type,
                    tool_call_id=payload.tool_call_id,
                    output=text,
                    stop_reason=reason,
                )
            )

        yield piece("start")
        run = self.run.get(payload.name, self._answer)
        task = asyncio.ensure_future(run(tool_call))
        abort = asyncio.ensure_future(signal.wait())
        try:
            await asyncio.wait({task, abort}, return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                text, reason = task.result(), StopReason.COMPLETED
            else:
                text = "[interrupted: tool aborted by user]"
                reason = StopReason.ABORTED
        finally:
            task.cancel()
            abort.cancel()
        yield piece("delta", text)
        yield piece("stop", reason=reason)
        yield tool_call_output(payload.tool_call_id, text, reason)

    async def _answer(self, tool_call: OmniMessage) -> str:
        return f"ran {tool_call.payload.name}"


class Record:
    """Keeps what the loop recorded, one list entry per transaction.

    `delay` says how long a transaction takes; only then its messages are `durable`.
    """

    def __init__(self) -> None:
        self.durable: list[OmniMessage] = []
        self.transactions: list[tuple[OmniMessage, ...]] = []
        self.fail_on: Callable[[OmniMessage], bool] = lambda _: False
        self.delay: Callable[[tuple[OmniMessage, ...]], float | None] = lambda _: None

    @property
    def messages(self) -> list[OmniMessage]:
        return [m for transaction in self.transactions for m in transaction]

    async def __call__(self, *messages: OmniMessage) -> None:
        if any(self.fail_on(message) for message in messages):
            raise RecordError("the disk is full")
        self.transactions.append(messages)
        delay = self.delay(messages)
        if delay is not None:
            await asyncio.sleep(delay)
        self.durable += messages


class Desk:
    """Decides at once as `answer` says, or waits for an answer in `later`."""

    def __init__(self, tools: Tools, answer: str | None = "allow") -> None:
        self.tools = tools
        self.answer = answer
        self.asked: list[str] = []
        self.later: dict[str, asyncio.Future[str]] = {}
        self.signals: list[str | None] = []

    async def __call__(self, message, signal) -> Decision:
        name = call_id(message)
        self.asked.append(name)
        if self.answer is not None:
            return self.decision(message, self.answer, "mode")
        future = self.later.setdefault(name, asyncio.get_running_loop().create_future())
        watch = asyncio.ensure_future(signal.wait())
        await asyncio.wait({future, watch}, return_when=asyncio.FIRST_COMPLETED)
        watch.cancel()
        if future.done():
            return self.decision(message, future.result(), "user")
        self.signals.append(signal.reason)
        return self.decision(message, "deny", signal.reason)

    def decision(self, message, answer, source) -> Decision:
        event = p.ApprovalDecision(
            decision=answer,
            tool_call_id=call_id(message),
            source=source,
            via="auto",
            arguments_sha256=digest_of(self.tools, message),
        )
        return Decision(event=event)

    async def say(self, name: str, answer: str) -> None:
        """Answer as soon as the call has been asked about."""
        while name not in self.later:
            await asyncio.sleep(0)
        self.later[name].set_result(answer)
