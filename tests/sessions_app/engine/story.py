"""A loop with everything around it under a test's control, and looks at what it did."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence

from sessions_app.engine import AgentLoop, History, LoopOptions
from sessions_app.environment.tool import AbortSignal
from tests.sessions_app.engine.scripted import Desk, Record, ScriptedModel, Tools
from traces_app.omnimessage import OmniMessage, user_text
from traces_app.omnimessage import payloads as p


class FakeTime:
    """A clock that only sleeping moves."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.slept: list[float] = []
        self.hold: asyncio.Event | None = None

    def clock(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        if self.hold is not None:
            await self.hold.wait()
        self.now += seconds


class Story:
    """A loop with everything around it under a test's control."""

    def __init__(self, *scripts, answer="allow", history=None, **options) -> None:
        self.model = ScriptedModel(
            *scripts, context_window=options.pop("context_window", 100_000)
        )
        self.tools = Tools()
        self.record = Record()
        self.desk = Desk(self.tools, answer)
        self.time = FakeTime()
        self.queued: list[OmniMessage] = []
        self.seen: list[OmniMessage] = []
        self.loop = AgentLoop(
            llm=self.model,
            environment=self.tools,
            system_prompt="You are a test.",
            history=history or History(),
            record=self.record,
            decide=lambda message, signal: self.desk(message, signal),
            options=LoopOptions(**options),
            take_queued=self._take_queued,
            clock=self.time.clock,
            sleep=self.time.sleep,
        )

    async def _take_queued(self) -> Sequence[OmniMessage]:
        taken, self.queued = self.queued, []
        if taken:
            await self.record(*taken)
        return taken

    async def run(
        self, *inputs: str | OmniMessage, signal=None, until=None
    ) -> list[OmniMessage]:
        """Run to the end; returns what this run yielded."""
        seen = []
        messages = [user_text(i) if isinstance(i, str) else i for i in inputs]
        async for message in self.loop.run(messages, signal=signal):
            seen.append(message)
            self.seen.append(message)
            # Never shown before it is on record.
            durable = [stored.payload for stored in self.record.durable]
            assert message.is_partial or message.payload in durable
            if until is not None:
                until(message)
        return seen

    @property
    def recorded(self) -> list[OmniMessage]:
        return self.record.messages


def stop_at(signal: AbortSignal, kind: str, number: int = 1):
    """Fire the signal when the message comes for the n-th time."""
    left = [number]

    def look(message):
        if message.kind == kind:
            left[0] -= 1
            if left[0] == 0:
                signal.abort()

    return look


def kinds(messages: Iterable[OmniMessage]) -> list[str]:
    """The kinds of the messages, streaming pieces left out."""
    return [message.kind for message in messages if not message.is_partial]


def only(messages: Iterable[OmniMessage], kind: str) -> list[p.Payload]:
    """The payloads of one kind."""
    return [message.payload for message in messages if message.kind == kind]


def words(messages: Iterable[OmniMessage]) -> list[str]:
    """Texts and outputs of a request's input, in order."""
    found = []
    for message in messages:
        match message.payload:
            case p.Text(text=text):
                found.append(text)
            case p.ToolCallOutput(output=text):
                found.append(text)
            case p.ToolCall(tool_call_id=name):
                found.append(f"<{name}>")
    return found
