"""Whatever a model, people, tools, the record and the power supply do: it adds up."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from contextlib import suppress

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sessions_app.engine import History, RecordError
from tests.sessions_app.engine.scenarios import Play, scenario, scripts_of
from tests.sessions_app.engine.story import Story, kinds, only, words
from traces_app.omnimessage import OmniMessage

many = settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


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


@many
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


@many
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


@many
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
