"""How many children there may be, who makes room, and that all of them end."""

import asyncio

import pytest

from sessions_app.environment.subagent_table import SubagentTable
from sessions_app.environment.tool import ToolError
from tests.sessions_app.environment.children import (
    Child,
    ChildWish,
    Nursery,
    answers,
    poll,
    run,
    start,
)
from traces_app.omnimessage import StopReason, assistant_text

WISH = ChildWish(tool_call_id="call_1")


async def waits(child, prompt):
    await child.wait()
    yield assistant_text("done")


@pytest.fixture
def nursery() -> Nursery:
    return Nursery(waits)


@pytest.fixture
def environment(make_environment, nursery):
    return make_environment(spawn_child=nursery)


async def fill(environment, count: int = 8) -> list[str]:
    return await asyncio.gather(*(start(environment) for _ in range(count)))


async def test_of_twelve_at_once_eight_are_admitted(environment, nursery):
    calls = [run(environment, yield_time_ms=250) for _ in range(12)]

    called = await asyncio.gather(*calls)

    failed = [c for c in called if c.stop_reason is StopReason.FAILED]
    assert len(failed) == 4 and len(nursery.children) == 8
    assert all("too many subagents" in c.output for c in failed)


async def test_a_ninth_child_is_not_made_while_eight_work(environment, nursery):
    await fill(environment)

    called = await run(environment)

    assert called.stop_reason is StopReason.FAILED
    assert "too many subagents" in called.output
    assert len(nursery.children) == 8
    assert not any(child.signal.aborted for child in nursery.children)


async def test_an_idle_child_makes_room(environment, nursery):
    ids = await fill(environment)
    nursery.children[3].gate().set()
    await poll(environment, ids[3])

    await start(environment)

    assert len(nursery.children) == 9
    called = await poll(environment, ids[3])
    assert called.stop_reason is StopReason.FAILED
    assert f"subagent {ids[3]} was evicted" in called.output
    assert nursery.children[3].closed == "evicted"
    others = nursery.children[:3] + nursery.children[4:]
    assert not any(child.signal.aborted for child in others)


async def test_of_two_idle_children_the_one_unused_for_longer_goes(
    environment, nursery
):
    ids = await fill(environment)
    for index in (0, 1):
        nursery.children[index].gate().set()
        await poll(environment, ids[index])
    await poll(environment, ids[0])

    await start(environment)

    assert [child.closed for child in nursery.children[:2]] == [None, "evicted"]


async def test_a_child_whose_answer_was_handed_over_takes_no_slot(environment, nursery):
    nursery.play = answers
    for _ in range(10):
        assert (await run(environment)).stop_reason is StopReason.COMPLETED

    assert environment.subagents() == []
    await environment.aclose()
    assert {child.closed for child in nursery.children} == {"released"}


async def test_a_refused_child_gives_its_slot_back(environment, nursery):
    nursery.refuses = ToolError("unknown agent")
    for _ in range(9):
        await run(environment)
    nursery.refuses = None

    assert len(await fill(environment)) == 8


async def test_a_child_that_is_made_too_late_is_given_up(nursery):
    table = SubagentTable(nursery)
    making = asyncio.create_task(table.make(WISH))
    await asyncio.sleep(0)
    making.cancel()
    await asyncio.wait({making})
    await asyncio.sleep(0.01)

    await table.aclose()

    assert [child.closed for child in nursery.children] == ["released"]
    assert len(table.describe()) == 0


async def test_a_child_unused_for_too_long_is_let_go(nursery):
    nursery.play = answers
    table = SubagentTable(nursery, max_unused_s=0.05)
    session = await table.make(WISH)
    session.is_background = True
    await asyncio.sleep(0.06)

    with pytest.raises(ToolError, match="evicted"):
        table.find(session.subagent_id)
    await table.aclose()


async def test_closing_ends_every_child_and_may_be_repeated(environment, nursery):
    await fill(environment, 3)

    await environment.aclose()
    await environment.aclose()

    assert all(child.signal.aborted for child in nursery.children)
    assert [child.closed for child in nursery.children] == ["closed"] * 3
    assert environment.subagents() == []


async def test_stopping_ends_what_children_do_and_keeps_them(environment, nursery):
    ids = await fill(environment, 2)

    environment.stop_subagents()

    called = await poll(environment, ids[0])
    assert called.stop_reason is StopReason.FAILED
    assert "interrupted by the user" in called.output
    assert called.details["subagent_id"] == ids[0]


async def test_children_of_before_can_be_given_a_task(make_environment, nursery):
    child = Child("child-old", answers, WISH)
    environment = make_environment(spawn_child=nursery, children=[child])

    called = await poll(environment, "child-old", prompt="more")

    assert called.output.startswith("did more\n")


async def test_a_child_lost_at_a_restart_is_not_just_unknown(make_environment, nursery):
    gone = {"child-lost": "lost", "child-evicted": "evicted"}
    environment = make_environment(spawn_child=nursery, gone_children=gone)

    lost, evicted, unknown = [
        (await poll(environment, f"child-{name}")).output
        for name in ("lost", "evicted", "unknown")
    ]

    assert "child-lost was lost: the server restarted" in lost
    assert "child-evicted was evicted" in evicted
    assert "unknown subagent_id" in unknown
