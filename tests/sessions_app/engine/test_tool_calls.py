"""Calls: one decision, at most one run, one output; order for record and model."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from sessions_app.engine import Decision
from sessions_app.engine.digest import arguments_sha256
from tests.sessions_app.engine.scripted import call, say
from tests.sessions_app.engine.story import Story, kinds, only, words
from traces_app.omnimessage import StopReason
from traces_app.omnimessage import payloads as p

THREE = [
    *call("a", wire_id="c1"),
    *call("a", wire_id="c2"),
    *call("a", wire_id="c3"),
]


async def test_allowed_call_is_recorded_decided_started_and_answered_in_that_order():
    story = Story(call("a"), say("done"))

    seen = await story.run("go")

    about_call = [
        m.kind
        for m in seen
        if not m.is_partial and getattr(m.payload, "tool_call_id", None) == "c1"
    ]
    assert about_call == [
        "tool_call",
        "approval_decision",
        "tool_started",
        "tool_call_output",
    ]


async def test_decision_and_start_are_one_transaction():
    story = Story(call("a"), say("done"))

    await story.run("go")

    transactions = [[m.kind for m in t] for t in story.record.transactions]
    assert ["approval_decision", "tool_started"] in transactions


async def test_nothing_runs_before_its_start_is_on_record():
    story = Story(call("a"), say("done"))
    at_start = []

    async def look(_):
        at_start.extend(kinds(story.recorded))
        return ""

    story.tools.run["a"] = look
    await story.run("go")

    assert "tool_started" in at_start


async def test_denied_call_yields_aborted_output_and_the_loop_goes_on():
    story = Story(call("a"), say("I see"), answer="deny")

    await story.run("go")

    (output,) = only(story.recorded, "tool_call_output")
    assert output.output == "Tool call denied by user."
    assert output.stop_reason is StopReason.ABORTED
    assert dict(output.details) == {}
    assert story.tools.started == []
    assert words(story.model.requests[1].messages)[-1] == "Tool call denied by user."
    transactions = [[m.kind for m in t] for t in story.record.transactions]
    assert ["approval_decision", "tool_call_output"] in transactions


async def test_outputs_come_in_completion_order_and_go_to_the_model_in_call_order():
    story = Story(THREE, say("done"), answer=None)
    gate = asyncio.Event()

    async def first_is_slow(message):
        if message.payload.tool_call_id == "c1":
            await gate.wait()
        return f"out {message.payload.tool_call_id}"

    story.tools.run["a"] = first_is_slow
    run = asyncio.create_task(story.run("go"))
    await story.desk.say("c1", "allow")
    await story.desk.say("c2", "deny")
    await story.desk.say("c3", "allow")
    while len(only(story.recorded, "tool_call_output")) < 2:
        await asyncio.sleep(0)
    gate.set()
    await run

    streamed = [o.tool_call_id for o in only(story.recorded, "tool_call_output")]
    assert streamed[-1] == "c1"
    assert words(story.model.requests[1].messages) == [
        "go",
        "<c1>",
        "<c2>",
        "<c3>",
        "out c1",
        "Tool call denied by user.",
        "out c3",
    ]


async def test_second_call_is_decided_while_the_first_still_runs():
    story = Story([*call("a", wire_id="c1"), *call("b", wire_id="c2")], say("done"))
    decided = asyncio.Event()

    async def slow(_):
        await decided.wait()
        return "slow"

    story.tools.run["a"] = slow
    await story.run(
        "go",
        until=lambda m: (
            decided.set()
            if m.kind == "tool_started" and m.payload.tool_call_id == "c2"
            else None
        ),
    )

    assert kinds(story.recorded).count("tool_call_output") == 2


async def test_stream_is_read_on_while_a_call_waits_for_its_decision():
    story = Story([*THREE, *say("and that is all")], say("done"), answer=None)

    run = asyncio.create_task(story.run("go"))
    while "request_end" not in kinds(story.recorded):
        await asyncio.sleep(0)
    recorded = words(m for m in story.recorded if m.kind == "text")
    for name in ("c3", "c1", "c2"):
        await story.desk.say(name, "allow")
    await run

    assert recorded == ["go", "and that is all"]
    assert story.desk.asked == ["c1", "c2", "c3"]
    decisions = [d.tool_call_id for d in only(story.recorded, "approval_decision")]
    assert decisions == ["c3", "c1", "c2"]


async def test_automatic_decisions_are_made_in_call_order():
    calls = [step for n in range(8) for step in call("a", wire_id=f"c{n}")]
    story = Story(calls, say("done"))

    await story.run("go")

    decisions = [d.tool_call_id for d in only(story.recorded, "approval_decision")]
    assert decisions == [f"c{n}" for n in range(8)]


async def test_unknown_tool_and_broken_arguments_are_decided_like_any_call():
    story = Story(
        [*call("nope", wire_id="c1"), *call("a", '{"x": ', wire_id="c2")], say("done")
    )

    await story.run("go")

    assert story.desk.asked == ["c1", "c2"]
    assert kinds(story.recorded).count("approval_decision") == 2


async def test_call_that_is_not_what_was_approved_does_not_run():
    story = Story(call("a", '{"x": 1}'), say("done"))
    honest = story.desk.decision

    def forged(message, answer, source):
        decision = honest(message, answer, source)
        event = replace(decision.event, arguments_sha256="0" * 64)
        return Decision(event=event)

    story.desk.decision = forged
    await story.run("go")

    assert story.tools.started == []
    (output,) = only(story.recorded, "tool_call_output")
    assert output.stop_reason is StopReason.ABORTED
    assert output.output.startswith("[not run: ")
    assert "tool_started" not in kinds(story.recorded)


async def test_edited_arguments_run_and_the_output_says_so():
    story = Story(call("a", '{"x": 1}'), say("done"))

    def edited(message, answer, source):
        event = p.ApprovalDecision(
            decision="allow",
            tool_call_id="c1",
            attempt=2,
            source="user",
            via="button",
            arguments_sha256=arguments_sha256("a", None, '{"x": 2}'),
        )
        return Decision(event=event, arguments='{"x": 2}')

    story.desk.decision = edited
    seen = await story.run("go")

    assert story.tools.arguments == ['{"x": 2}']
    (output,) = only(story.recorded, "tool_call_output")
    assert output.output == "arguments edited by the approver\nran a"
    pieces = only(seen, "partial_tool_call_output")
    assert "".join(piece.output for piece in pieces) == output.output
    assert only(story.recorded, "tool_call")[0].arguments == '{"x": 1}'


async def test_decision_that_is_on_record_already_is_not_recorded_again():
    story = Story(call("a"), say("done"))
    honest = story.desk.decision

    async def desk(message, signal):
        decision = honest(message, "allow", "user")
        await story.record(replace(message, payload=decision.event))
        return replace(decision, is_recorded=True)

    story.desk = desk
    await story.run("go")

    assert kinds(story.recorded).count("approval_decision") == 1
    assert kinds(story.seen).count("approval_decision") == 1
    assert story.loop.history.decided["c1"].decision == "allow"


async def test_environment_that_raises_still_gives_one_output():
    story = Story(call("a"), say("done"))

    async def broken(_):
        raise LookupError("kaboom")

    story.tools.run["a"] = broken
    seen = await story.run("go")

    (output,) = only(story.recorded, "tool_call_output")
    assert output.stop_reason is StopReason.FAILED
    assert "kaboom" in output.output
    pieces = only(seen, "partial_tool_call_output")
    assert "".join(piece.output for piece in pieces) == output.output
    assert pieces[-1].event_type == "stop"


async def test_tool_that_is_slow_does_not_hold_up_the_others():
    story = Story(THREE, say("done"))
    running: set[str] = set()

    async def together(message):
        running.add(message.payload.tool_call_id)
        while len(running) < 3:
            await asyncio.sleep(0)
        return "all three at once"

    story.tools.run["a"] = together
    await story.run("go")

    assert kinds(story.recorded).count("tool_call_output") == 3
