"""Random scenarios of a model, people, tools and the record, played on a loop."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, field

from hypothesis import strategies as st

from sessions_app.engine import History
from sessions_app.environment.tool import AbortSignal
from sessions_app.llm.client import (
    CredentialsError,
    InvalidRequestError,
    LLMError,
    MalformedStreamError,
)
from tests.sessions_app.engine.scripted import (
    Desk,
    call,
    half,
    half_call,
    say,
    think,
    usage,
)
from tests.sessions_app.engine.story import Story
from traces_app.omnimessage import OmniMessage, image_url, user_text

PICTURE = image_url("data:image/png;base64,AA==")
HANG_S = 0.03  # what a hanging model, tool or person is given before Stop

step = st.one_of(
    st.tuples(st.just("say"), st.sampled_from(["", " ", "text", "a\nb\u2028c\x00"])),
    st.tuples(st.just("think"), st.just("hm")),
    st.tuples(st.just("half"), st.just("unfin")),
    st.tuples(st.just("half_call"), st.just("x")),
    st.tuples(
        st.just("call"), st.tuples(st.sampled_from("ab"), st.sampled_from("xyz"))
    ),
    st.tuples(st.just("usage"), st.sampled_from([10, 1000])),
    st.tuples(st.just("pause"), st.just(0)),
)
ending = st.sampled_from(
    ["", "", "", "503", "cut", "auth", "400", "image", "long", "hang", "bug"]
)
answer = st.tuples(st.lists(step, max_size=5), ending)
decision = st.sampled_from(["allow", "allow", "deny", "never", "late", "raise"])
tool = st.sampled_from(["quick", "quick", "slow", "hang", "raise"])
scenario = st.fixed_dictionaries(
    {
        "answers": st.lists(answer, min_size=1, max_size=5),
        "decisions": st.lists(decision, min_size=1, max_size=4),
        "tools": st.lists(tool, min_size=1, max_size=4),
        "stop_after": st.none() | st.integers(1, 40),
        "queue_after": st.none() | st.integers(1, 30),
        "has_picture": st.booleans(),
        "max_turns": st.sampled_from([-1, 1, 2]),
        "record_delays": st.lists(st.sampled_from([None, 0, 0.001]), max_size=3),
    }
)


def played(steps, end) -> list:
    script: list = []
    for number, (kind, value) in enumerate(steps):
        match kind:
            case "say":
                script += say(value)
            case "think":
                script += think(value)
            case "half":
                script += half(value)
            case "half_call":
                script += half_call("a", '{"x": ', wire_id=f"h{number}")
            case "call":
                name, wire_id = value
                script += call(name, '{"x": 1}', wire_id=wire_id)
            case "usage":
                script.append(usage(output=value))
            case "pause":
                script.append("pause")
    errors = {
        "503": LLMError("503"),
        "cut": MalformedStreamError("cut"),
        "auth": CredentialsError("401"),
        "400": InvalidRequestError("400"),
        "image": InvalidRequestError("image refused"),
        "long": InvalidRequestError("prompt is too long"),
        "bug": ZeroDivisionError("bug"),
    }
    script += ["hang"] if end == "hang" else [errors[end]] if end else []
    return script


def awaitable(steps):
    """Make waits anew for each request: they belong to one event loop."""
    for item in steps:
        if item == "pause":
            yield asyncio.sleep(0.001)
        elif item == "hang":
            yield asyncio.Event()
        else:
            yield item


def scripts_of(plan: dict) -> list:
    scripts = [played(*part) for part in plan["answers"]]
    return [lambda _, script=script: awaitable(script) for script in scripts]


@dataclass
class Play:
    """One scenario on stage."""

    plan: dict
    history: History = field(default_factory=History)

    def __post_init__(self) -> None:
        self.story = Story(
            *scripts_of(self.plan),
            history=self.history,
            max_turns=self.plan["max_turns"],
            max_context_length=900,
            stop_grace_s=0.01,
        )
        self.story.desk = self._decide
        self.story.tools.run = {"a": self._work, "b": self._work}
        self.story.record.delay = self._delay
        self.counts: Counter[str] = Counter()

    def _next(self, what: str):
        choices = self.plan[what]
        self.counts[what] += 1
        return choices[self.counts[what] % len(choices)] if choices else None

    def _delay(self, _):
        return self._next("record_delays")

    async def _decide(self, message, signal):
        desk = Desk(self.story.tools)
        match self._next("decisions"):
            case "never":
                await signal.wait()
                return desk.decision(message, "deny", signal.reason)
            case "late":
                await asyncio.sleep(0.002)
                return desk.decision(message, "allow", "user")
            case "raise":
                return desk.decision(message, "deny", "policy")
            case word:
                return desk.decision(message, word, "mode")

    async def _work(self, _):
        match self._next("tools"):
            case "slow":
                await asyncio.sleep(0.002)
            case "hang":
                await asyncio.Event().wait()
            case "raise":
                raise LookupError("broken")
        return "out"

    async def run(self, *texts: str) -> list[OmniMessage]:
        signal = AbortSignal()
        seen: list[OmniMessage] = []
        timer = asyncio.get_running_loop().call_later(HANG_S, signal.abort)

        def look(message):
            seen.append(message)
            if len(seen) == self.plan["stop_after"]:
                signal.abort()
            if len(seen) == self.plan["queue_after"]:
                self.story.queued.append(user_text("queued"))

        inputs = [*texts, *([PICTURE] if self.plan["has_picture"] and texts else [])]
        try:
            await self.story.run(*inputs, signal=signal, until=look)
        finally:
            timer.cancel()
        return seen
