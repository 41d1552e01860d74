"""A child's calls are asked through the parent's callback, whoever polls."""

import asyncio

import pytest

from sessions_app.environment import AbortSignal
from tests.sessions_app.environment.children import Nursery, poll, run, start
from traces_app.omnimessage import StopReason, assistant_text


class Person:
    """Answers when the test says so."""

    def __init__(self) -> None:
        self.asked = []
        self.answer: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def __call__(self, call):
        self.asked.append(call)
        return await asyncio.shield(self.answer)


@pytest.fixture
async def person() -> Person:
    return Person()


@pytest.fixture
def nursery() -> Nursery:
    async def play(child, prompt):
        await child.wait("ask")
        decision = await child.ask()
        yield assistant_text(f"decision: {decision}")

    return Nursery(play)


@pytest.fixture
def environment(make_environment, nursery):
    return make_environment(spawn_child=nursery)


async def background(environment, nursery, person) -> str:
    """Start a child that waits for a decision when its call returns."""
    task = asyncio.create_task(start(environment, approve=person))
    await asyncio.sleep(0.05)
    nursery.child.gate("ask").set()
    return await task


async def test_the_person_sees_whose_call_it_is(environment, nursery, person):
    person.answer.set_result("allow")
    task = asyncio.create_task(run(environment, approve=person))
    await asyncio.sleep(0.05)
    nursery.child.gate("ask").set()

    assert (await task).output == "decision: allow"
    (asked,) = person.asked
    assert asked.origin == ("child-1",)


async def test_the_note_says_how_many_calls_wait(environment, nursery, person):
    task = asyncio.create_task(run(environment, yield_time_ms=250, approve=person))
    await asyncio.sleep(0.05)
    nursery.child.gate("ask").set()

    called = await task

    assert called.stop_reason is StopReason.COMPLETED
    assert called.output.splitlines()[-1] == "[pending approvals of the subagent: 1]"
    assert called.details["pending_approvals"] == 1


async def test_a_call_made_while_nobody_polls_is_asked_at_once(
    environment, nursery, person
):
    await start(environment, approve=person)
    nursery.child.gate("ask").set()

    async with asyncio.timeout(5):
        while not person.asked:
            await asyncio.sleep(0.01)


async def test_a_decision_after_the_wait_still_counts(environment, nursery, person):
    subagent_id = await background(environment, nursery, person)

    person.answer.set_result("allow")

    called = await poll(environment, subagent_id)
    assert called.output.startswith("decision: allow\n")


async def test_one_call_is_asked_once_over_several_polls(environment, nursery, person):
    subagent_id = await background(environment, nursery, person)
    for _ in range(2):
        called = await poll(environment, subagent_id, yield_time_ms=250, approve=person)
        assert called.details["pending_approvals"] == 1
    person.answer.set_result("deny")

    called = await poll(environment, subagent_id, approve=person)

    assert called.output.startswith("decision: deny\n")
    assert len(person.asked) == 1


async def test_the_newest_callback_is_asked(environment, nursery, person):
    subagent_id = await start(environment, approve=None)
    task = asyncio.create_task(poll(environment, subagent_id, approve=person))
    await asyncio.sleep(0.05)
    nursery.child.gate("ask").set()
    person.answer.set_result("allow")

    assert (await task).output.startswith("decision: allow\n")


async def test_without_a_callback_the_answer_is_no(environment, nursery):
    task = asyncio.create_task(run(environment))
    await asyncio.sleep(0.05)
    nursery.child.gate("ask").set()

    assert (await task).output == "decision: deny"


async def test_an_interrupted_call_leaves_no_child_waiting(
    environment, nursery, person
):
    signal = AbortSignal()
    task = asyncio.create_task(run(environment, signal=signal, approve=person))
    await asyncio.sleep(0.05)
    nursery.child.gate("ask").set()
    await asyncio.sleep(0.05)

    signal.abort()

    assert (await task).stop_reason is StopReason.ABORTED
    assert nursery.child.signal.aborted
    person.answer.set_result("deny")
