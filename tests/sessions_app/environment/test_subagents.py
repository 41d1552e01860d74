"""run_subagent and input_subagent, with children whose every word the test writes."""

import asyncio
from dataclasses import replace

import pytest

from sessions_app.environment import (
    AbortSignal,
    ToolError,
    default_tool_definitions,
    tools_of_child,
)
from sessions_app.environment.child_answer import HELD
from sessions_app.environment.tools import input_subagent, run_subagent
from tests.sessions_app.environment.calls import call
from tests.sessions_app.environment.children import (
    Nursery,
    notice,
    piece,
    poll,
    run,
    start,
)
from traces_app.omnimessage import StopReason, assistant_text, event, tool_call
from traces_app.omnimessage import payloads as p

SHORT = 250  # the shortest wait, in milliseconds


@pytest.fixture
def nursery() -> Nursery:
    return Nursery()


@pytest.fixture
def environment(make_environment, nursery):
    return make_environment(spawn_child=nursery)


async def works(child, prompt):
    """Say something, wait for the gate, say the rest."""
    yield piece("first ")
    await child.wait()
    yield assistant_text("first words")
    yield assistant_text("second words")


async def test_the_output_is_what_the_child_answers(environment, nursery):
    called = await run(environment, "Hello World")

    assert called.output == "did Hello World"
    assert called.stop_reason is StopReason.COMPLETED
    assert called.details["session_id"] == nursery.child.session_id


async def test_messages_of_a_child_carry_its_origin_and_begin_with_its_meta(
    environment, nursery
):
    called = await run(environment)

    carried = [message for message in called.messages if message.origin]
    assert {message.origin for message in carried} == {("child-1",)}
    assert [message.kind for message in carried] == ["session_meta", "text"]
    assert carried[0].payload.source == "subagent"


@pytest.mark.parametrize("arguments", ["{}", '{"prompt": " \\n"}', '{"prompt": 3}'])
async def test_a_child_without_a_prompt_is_not_started(environment, nursery, arguments):
    called = await call(environment, "run_subagent", arguments)

    assert called.stop_reason is StopReason.FAILED
    assert "prompt" in called.output
    assert nursery.children == []


@pytest.mark.parametrize("half", ["model_id", "provider"])
async def test_half_a_model_is_refused(environment, nursery, half):
    called = await run(environment, **{half: "some"})

    assert called.stop_reason is StopReason.FAILED
    assert "model_id" in called.output and "provider" in called.output
    assert nursery.children == []


async def test_the_wish_names_agent_model_and_call(environment, nursery):
    await run(environment, agent_id="reviewer", provider="demo", model_id="demo-text")

    wish = nursery.child.wish
    assert (wish.agent_id, wish.provider, wish.model_id) == (
        "reviewer",
        "demo",
        "demo-text",
    )
    assert wish.tool_call_id == "call_7"


async def test_what_the_partner_refuses_is_told(environment, nursery):
    nursery.refuses = ToolError("unknown agent '../x'; known agents: a")

    called = await run(environment, agent_id="../x")

    assert called.stop_reason is StopReason.FAILED
    assert "unknown agent '../x'" in called.output
    assert environment.subagents() == []


async def test_only_the_text_after_the_last_call_is_the_answer(environment, nursery):
    async def play(child, prompt):
        yield assistant_text("I will look.")
        yield tool_call("exec_command", "{}", "c")
        yield assistant_text("It is blue.")
        yield assistant_text("Quite.")

    nursery.play = play

    assert (await run(environment)).output == "It is blue.\nQuite."


async def test_an_answer_that_came_in_no_pieces_arrives(environment, nursery):
    async def play(child, prompt):
        yield piece("half ")
        yield assistant_text("half and half")

    nursery.play = play

    assert (await run(environment)).output == "half and half"


async def test_a_working_child_goes_to_the_background(environment, nursery):
    nursery.play = works

    called = await run(environment, yield_time_ms=SHORT)

    assert called.stop_reason is StopReason.COMPLETED
    assert called.output == (
        "first \n[subagent still running with subagent_id child-1]"
    )
    assert called.details["running"] is True
    assert called.details["subagent_id"] == "child-1"


def test_how_long_the_calls_wait_when_nobody_says():
    assert run_subagent.DEFAULT_YIELD_MS == 300_000
    assert input_subagent.TASK_YIELD_MS == 300_000
    assert input_subagent.POLL_YIELD_MS == 10_000


async def test_a_poll_brings_only_new_text(environment, nursery):
    async def play(child, prompt):
        yield piece("one ")
        await child.wait("more")
        yield piece("two ")
        await child.wait()

    nursery.play = play
    subagent_id = await start(environment)
    nursery.child.gate("more").set()

    called = await poll(environment, subagent_id, yield_time_ms=SHORT)

    assert called.output == "two \n[subagent still running with subagent_id child-1]"


async def test_the_poll_that_sees_the_end_brings_the_rest(environment, nursery):
    nursery.play = works
    subagent_id = await start(environment)
    nursery.child.gate().set()

    called = await poll(environment, subagent_id)

    assert called.output == (
        "words\nsecond words\n[subagent idle with subagent_id child-1]"
    )
    assert called.stop_reason is StopReason.COMPLETED
    assert called.details["running"] is False
    assert nursery.child.closed is None


async def test_another_poll_of_an_idle_child_says_so(environment, nursery):
    nursery.play = works
    subagent_id = await start(environment)
    nursery.child.gate().set()
    await poll(environment, subagent_id)

    called = await poll(environment, subagent_id)

    assert called.output == "[subagent idle with subagent_id child-1]"
    assert called.stop_reason is StopReason.COMPLETED


async def test_an_idle_child_takes_another_task(environment, nursery):
    nursery.play = works
    subagent_id = await start(environment)
    nursery.child.gate().set()
    await poll(environment, subagent_id)

    called = await poll(environment, subagent_id, prompt="again")

    assert called.output.startswith("first words\nsecond words")
    assert nursery.child.prompts == ["a", "again"]


async def test_a_working_child_takes_no_other_task(environment, nursery):
    nursery.play = works
    subagent_id = await start(environment)

    called = await poll(environment, subagent_id, prompt="again")

    assert called.stop_reason is StopReason.FAILED
    assert "still running" in called.output
    assert nursery.child.prompts == ["a"]
    nursery.child.gate().set()
    assert "second words" in (await poll(environment, subagent_id)).output


@pytest.mark.parametrize("arguments", ["{}", '{"subagent_id": "child-9"}'])
async def test_an_unknown_child_is_told(environment, nursery, arguments):
    nursery.play = works
    await start(environment)

    called = await call(environment, "input_subagent", arguments)

    assert called.stop_reason is StopReason.FAILED
    assert "subagent_id" in called.output
    if "child-9" in arguments:
        assert "child-9" in called.output and "child-1" in called.output


async def test_one_poll_at_a_time(environment, nursery):
    nursery.play = works
    subagent_id = await start(environment)
    first = asyncio.create_task(poll(environment, subagent_id))
    await asyncio.sleep(0.02)

    second = await poll(environment, subagent_id)

    assert second.stop_reason is StopReason.FAILED
    assert "another call is waiting" in second.output
    nursery.child.gate().set()
    assert "second words" in (await first).output


async def test_a_child_that_fails_is_no_success(environment, nursery):
    async def play(child, prompt):
        yield assistant_text("Got so far.")
        yield tool_call("exec_command", "{}", "c")
        yield event(p.Abort(reason="401 credentials rejected"))

    nursery.play = play

    called = await run(environment)

    assert called.stop_reason is StopReason.FAILED
    assert called.output == (
        "Got so far.\n[subagent did not complete: 401 credentials rejected]"
    )


async def test_a_child_that_breaks_is_no_success(environment, nursery):
    async def play(child, prompt):
        yield piece("Got so far.")
        raise RuntimeError("the disk is full")

    nursery.play = play

    called = await run(environment)

    assert called.stop_reason is StopReason.FAILED
    assert called.output.startswith("Got so far.\n")
    assert "the disk is full" in called.output


async def test_a_child_stopped_by_its_turn_cap_is_no_success(environment, nursery):
    async def play(child, prompt):
        yield assistant_text("Not done.")
        yield tool_call("exec_command", "{}", "c")
        yield notice("[reached max turns (1); stopping]")

    nursery.play = play

    called = await run(environment)

    assert called.stop_reason is StopReason.FAILED
    assert "reached max turns (1)" in called.output


async def test_a_child_without_an_answer_is_told(environment, nursery):
    async def play(child, prompt):
        yield assistant_text("I will look.")
        yield tool_call("exec_command", "{}", "c")

    nursery.play = play

    called = await run(environment)

    assert called.stop_reason is StopReason.COMPLETED
    assert called.output == "[subagent ended without a final answer]"


async def test_text_of_a_grandchild_is_carried_but_no_output(environment, nursery):
    async def play(child, prompt):
        yield assistant_text("deep").with_origin("grandchild")
        yield assistant_text("mine")

    nursery.play = play

    called = await run(environment)

    assert called.output == "mine"
    origins = [m.origin for m in called.messages if m.kind == "text"]
    assert origins == [("child-1", "grandchild"), ("child-1",)]


async def test_what_a_compaction_wrote_is_no_answer(environment, nursery):
    async def play(child, prompt):
        yield event(p.CompactionBegin(reason="context_length", mode="summary"))
        yield replace(
            assistant_text(""),
            payload=p.Text(role="user", text="SUMMARY", synthetic="summary"),
        )
        yield assistant_text("the answer")

    nursery.play = play

    assert (await run(environment)).output == "the answer"


async def test_interrupt_in_the_foreground_stops_the_child(environment, nursery):
    nursery.play = works
    signal = AbortSignal()
    task = asyncio.create_task(run(environment, signal=signal))
    await asyncio.sleep(0.05)

    signal.abort()
    called = await task

    assert called.stop_reason is StopReason.ABORTED
    assert nursery.child.signal.aborted
    await environment.aclose()
    assert nursery.child.closed == "released"


async def test_interrupt_of_a_poll_leaves_the_child_at_work(environment, nursery):
    nursery.play = works
    subagent_id = await start(environment)
    signal = AbortSignal()
    task = asyncio.create_task(poll(environment, subagent_id, signal=signal))
    await asyncio.sleep(0.05)

    signal.abort()
    called = await task

    assert called.stop_reason is StopReason.ABORTED
    assert called.details["running"] is True
    nursery.child.gate().set()
    assert "second words" in (await poll(environment, subagent_id)).output


async def test_timeout_stops_the_child(limited, nursery):
    nursery.play = works
    environment = limited(timeout_ms=200, spawn_child=nursery)

    called = await run(environment)

    assert called.stop_reason is StopReason.TIMEOUT
    assert "200 ms" in called.output
    assert nursery.child.signal.aborted
    assert environment.subagents() == []


def test_a_child_has_no_tools_for_children():
    names = [tool.name for tool in tools_of_child(default_tool_definitions())]

    assert names == ["exec_command", "input_command", "read_image", "describe_image"]


async def test_a_child_that_calls_a_subagent_tool_is_refused(make_environment):
    nursery = Nursery()
    tools = tools_of_child(default_tool_definitions())
    environment = make_environment(tools, spawn_child=nursery)

    called = await run(environment)

    assert called.stop_reason is StopReason.FAILED
    assert "run_subagent" in called.output
    assert nursery.children == []


async def test_the_middle_of_an_endless_text_is_dropped(limited, nursery):
    async def play(child, prompt):
        yield piece("begin" + "x" * HELD)
        yield piece("y" * HELD + "end")

    nursery.play = play
    environment = limited(max_output_length=0, spawn_child=nursery)

    called = await run(environment)

    assert called.output.startswith("begin") and called.output.endswith("end")
    assert f"[{HELD + 8} characters omitted here" in called.output
    assert len(called.output) < HELD + 200


async def test_pieces_nobody_follows_are_not_carried_later(environment, nursery):
    async def play(child, prompt):
        await child.wait("say")
        yield piece("abc")
        yield assistant_text("abc")
        await child.wait()

    nursery.play = play
    subagent_id = await start(environment)
    nursery.child.gate("say").set()
    await asyncio.sleep(0.05)

    called = await poll(environment, subagent_id, yield_time_ms=SHORT)

    carried = [message.kind for message in called.messages if message.origin]
    assert carried == ["text"]


async def test_a_child_that_forwards_nothing_carries_nothing(environment, nursery):
    async def play(child, prompt):
        child.forwards = False
        yield assistant_text("quiet")

    nursery.play = play

    called = await run(environment)

    assert called.output == "quiet"
    assert [m.kind for m in called.messages if m.origin] == ["session_meta"]
