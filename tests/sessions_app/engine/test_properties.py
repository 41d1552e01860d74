"""Whatever a model, people, tools, the record and the power supply do: it adds up."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sessions_app.engine import History, RecordError
from sessions_app.environment.tool import AbortSignal
from sessions_app.llm.client import (
    CredentialsError,
    InvalidRequestError,
    LLMError,
    MalformedStreamError,
)
from tests.sessions_app.engine.scripted import (
    Desk,
    Story,
    call,
    half,
    half_call,
    kinds,
    only,
    say,
    think,
    usage,
    words,
)
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


def check_record(record: list[OmniMessage]) -> None:
    """Every request ended; every call: one decision, one output, started if allowed."""
    assert kinds(record).count("request_begin") == kinds(record).count("request_end")
    calls = Counter(c.tool_call_id for c in only(record, "tool_call"))
    assert set(calls.values()) <= {1}
    assert Counter(d.tool_call_id for d in only(record, "approval_decision")) == calls
    assert Counter(o.tool_call_id for o in only(record, "tool_call_output")) == calls
    stage: dict[str, list[str]] = {name: [] for name in calls}
    for message in record:
        name = getattr(message.payload, "tool_call_id", None)
        if name is not None:
            stage[name].append(message.kind)
    for kinds_of_call in stage.values():
        assert kinds_of_call in (
            ["tool_call", "approval_decision", "tool_call_output"],
            ["tool_call", "approval_decision", "tool_started", "tool_call_output"],
        )


def check_started(record: list[OmniMessage], started: list[str]) -> None:
    """Only what was allowed and recorded as started ran, and at most once."""
    assert max(Counter(started).values(), default=0) <= 1
    recorded = {s.tool_call_id for s in only(record, "tool_started")}
    assert set(started) <= recorded
    allowed = {
        d.tool_call_id
        for d in only(record, "approval_decision")
        if d.decision == "allow"
    }
    assert recorded <= allowed


def check_request(messages: list[OmniMessage]) -> None:
    """Outputs stand right behind the answer that called, in call order."""
    waiting: list[str] = []
    for message in messages:
        match message.kind:
            case "tool_call":
                waiting.append(message.payload.tool_call_id)
            case "tool_call_output":
                assert waiting.pop(0) == message.payload.tool_call_id
            case _:
                is_answer = message.payload.role == "assistant"
                assert not waiting or is_answer
    assert not waiting


def check_nothing_typed_is_lost(story: Story) -> None:
    """What people wrote is still told, as it stands or quoted, up to a summary."""
    if any(m.payload.synthetic == "summary" for m in story.recorded if _is_text(m)):
        return
    told = "\n".join(words(story.loop.history.messages))
    for text in only(story.recorded, "text"):
        if text.role == "user" and text.synthetic is None:
            assert text.text in told


def _is_text(message: OmniMessage) -> bool:
    return message.kind == "text"


def check_blocks(record: list[OmniMessage]) -> None:
    for text in only(record, "text"):
        if text.synthetic in ("retry", "carry_over"):
            for line in text.text.splitlines()[1:-1]:
                assert isinstance(json.loads(line), dict)


@settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(scenario, scenario)
def test_two_runs_add_up_whatever_happens(first_plan, second_plan):
    async def both() -> None:
        play = Play(first_plan)
        await play.run("first prompt")
        play.plan = second_plan
        play.story.model.scripts = scripts_of(second_plan)
        await play.run("second prompt")

        story = play.story
        assert [m for m in story.seen if not m.is_partial] == story.recorded
        assert History.from_messages(story.recorded) == story.loop.history
        check_record(story.recorded)
        check_started(story.recorded, story.tools.started)
        check_blocks(story.recorded)
        check_nothing_typed_is_lost(story)
        for request in story.model.requests:
            check_request(list(request.messages))

    asyncio.run(both())


@settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(scenario, st.integers(0, 60), st.booleans())
def test_record_that_was_cut_anywhere_goes_on(plan, cut, has_prompt):
    async def crash_and_go_on() -> None:
        before = Play(plan)
        await before.run("first prompt")
        kept = [m for t in before.story.record.transactions[:cut] for m in t]

        after = Play(plan, history=History.from_messages(kept))
        await after.run(*(["second prompt"] if has_prompt else []))
        third = Play(plan, history=after.story.loop.history)
        third.plan = {**plan, "stop_after": None}
        await third.run("last prompt")

        everything = [*kept, *after.story.recorded, *third.story.recorded]
        assert History.from_messages(everything) == third.story.loop.history
        check_record(everything)
        check_blocks(everything)
        ran_later = [*after.story.tools.started, *third.story.tools.started]
        started_before = {s.tool_call_id for s in only(kept, "tool_started")}
        assert not started_before & set(ran_later)
        for story in (after.story, third.story):
            for request in story.model.requests:
                check_request(list(request.messages))

    asyncio.run(crash_and_go_on())


@settings(
    max_examples=100,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(scenario, st.integers(0, 20), st.booleans())
def test_failing_record_never_lets_a_call_run_without_it(plan, fail_at, is_lasting):
    async def fail_and_go_on() -> None:
        play = Play(plan)
        story = play.story
        left = [fail_at]

        def fails(_):
            left[0] -= 1
            return left[0] < 0 if is_lasting else left[0] == 0

        story.record.fail_on = fails
        with suppress(RecordError):
            await play.run("first prompt")
        check_started(story.recorded, story.tools.started)
        assert [m for m in story.seen if not m.is_partial] == story.recorded[
            : len([m for m in story.seen if not m.is_partial])
        ]
        assert History.from_messages(story.recorded) == story.loop.history

        story.record.fail_on = lambda _: False
        play.plan = {**plan, "stop_after": None}
        await play.run("second prompt")

        check_record(story.recorded)
        check_started(story.recorded, story.tools.started)
        assert History.from_messages(story.recorded) == story.loop.history

    asyncio.run(fail_and_go_on())
