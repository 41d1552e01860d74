"""How many commands are kept, which go first, and what people are told of it."""

import asyncio

import pytest

from sessions_app.environment import NullSink, ToolError
from sessions_app.environment.artifacts import ArtifactFolder
from sessions_app.environment.command_env import command_env
from sessions_app.environment.process_table import ProcessTable
from tests.sessions_app.environment.calls import poll, run, start


@pytest.fixture
async def make_table(workspace, home, sink):
    made = []

    def make(**limits) -> ProcessTable:
        made.append(
            ProcessTable(
                env=command_env({"PATH": "/usr/bin:/bin", "HOME": str(home)}, {}),
                sink=sink,
                folder=ArtifactFolder(None),
                poll_cap=16_000,
                lost={},
                **limits,
            )
        )
        return made[-1]

    yield make
    for table in made:
        await table.aclose()


@pytest.fixture
def keep(workspace):
    async def keep(table, cmd="sleep 30"):
        session = await table.start(
            cmd, cwd=str(workspace), tool_call_id="call_1", cap=100
        )
        table.keep(session)
        return session

    return keep


def changes(sink, change):
    return [c.process_id for c in sink.changes if c.change == change]


async def test_exited_session_goes_before_running_ones(make_table, keep, sink):
    table = make_table(max_background=3)
    oldest = await keep(table)
    exited = await keep(table, "true")
    while not exited.has_ended:
        await asyncio.sleep(0.01)
    others = [await keep(table), await keep(table)]

    assert [s.process_id for s in (oldest, *others)] == [
        entry["process_id"] for entry in table.describe()
    ]
    assert changes(sink, "evicted") == []


async def test_least_recently_used_goes_when_all_run(make_table, keep, sink):
    table = make_table(max_background=2)
    first, second = await keep(table), await keep(table)
    table.find(first.process_id)

    await keep(table)

    assert changes(sink, "evicted") == [second.process_id]
    with pytest.raises(ToolError, match="was evicted"):
        table.find(second.process_id)
    assert table.find(first.process_id) is first


async def test_listing_does_not_count_as_use(make_table, keep, sink):
    table = make_table(max_background=2)
    first, _ = await keep(table), await keep(table)
    table.describe()
    table.get(first.process_id)

    await keep(table)

    assert changes(sink, "evicted") == [first.process_id]


async def test_polled_session_is_evicted_last(make_table, keep, sink):
    table = make_table(max_background=2)
    first, second = await keep(table), await keep(table)
    first.is_polled = True

    await keep(table)

    assert changes(sink, "evicted") == [second.process_id]


async def test_evicted_process_is_ended(make_table, keep):
    table = make_table(max_background=1)
    first = await keep(table)

    await keep(table)

    await first.ending
    assert first.exit.signal == "SIGTERM"


async def test_eviction_is_told_instead_of_the_exit(make_table, keep, sink):
    table = make_table(max_background=1)
    first = await keep(table)
    await keep(table)
    await first.ending

    told = [c.change for c in sink.changes if c.process_id == first.process_id]

    assert told == ["started", "backgrounded", "evicted"]


async def test_unused_session_is_evicted_in_time(make_table, keep, sink):
    table = make_table(max_unused_s=0.3)
    unused, used = await keep(table), await keep(table)
    for _ in range(5):
        await asyncio.sleep(0.1)
        table.find(used.process_id)

    assert changes(sink, "evicted") == [unused.process_id]


async def test_foreground_commands_do_not_count(make_table, keep, workspace, sink):
    table = make_table(max_background=1)
    await keep(table)
    for number in range(3):
        await table.start(
            "sleep 30", cwd=str(workspace), tool_call_id=f"call_{number}", cap=100
        )

    assert len(table.describe()) == 4
    assert changes(sink, "evicted") == []


async def test_life_of_a_background_command_is_told(make_environment, sink):
    environment = make_environment(sink=sink)
    process = await start(environment, "read x; exit 3")
    await poll(environment, process, "\n", yield_time_ms=5000)

    started, backgrounded, exited = sink.changes
    assert (started.change, backgrounded.change) == ("started", "backgrounded")
    assert (exited.change, exited.exit_code) == ("exited", 3)
    assert started.cmd == "read x; exit 3"
    assert started.tool_call_id == "call_7"
    assert started.start_ticks > 0


async def test_exit_is_told_without_a_poll(make_environment, sink):
    environment = make_environment(sink=sink)
    await start(environment, "sleep 0.4; echo boom >&2; exit 3")

    await asyncio.sleep(0.6)

    assert sink.changes[-1].change == "exited"
    assert sink.changes[-1].exit_code == 3


async def test_processes_are_listed_with_their_facts(environment, workspace):
    process = await start(environment, "sleep 30")
    await run(environment, "true")

    (entry,) = environment.processes()

    assert entry["process_id"] == process.process_id
    assert entry["cmd"] == "sleep 30"
    assert entry["cwd"] == str(workspace)
    assert entry["running"] is True
    assert entry["exit_code"] is None
    assert entry["started_at"].endswith("Z")
    assert entry["escaped"] is False


async def test_exited_process_stays_listed_with_its_code(environment):
    process = await start(environment, "read x; exit 3")
    await poll(environment, process, "\n", yield_time_ms=5000)

    (entry,) = environment.processes()

    assert (entry["running"], entry["exit_code"]) == (False, 3)


async def test_killing_a_process_ends_it(environment):
    process = await start(environment, "sleep 30")

    assert await environment.kill_process(process.process_id) is True

    called = await poll(environment, process)
    assert called.output == "[terminated by signal SIGTERM]"
    assert await environment.kill_process(process.process_id) is False
    assert await environment.kill_process("proc-00000000") is False


async def test_killing_a_command_in_the_foreground_ends_its_call(environment):
    running = asyncio.create_task(run(environment, "echo text; sleep 30"))
    await asyncio.sleep(0.2)

    await environment.kill_process(environment.processes()[0]["process_id"])

    called = await running
    assert called.output == "text\n[terminated by signal SIGTERM]"


async def test_process_that_is_being_ended_is_not_running(environment):
    process = await start(environment, "trap '' TERM; while :; do sleep .05; done")
    killing = asyncio.create_task(environment.kill_process(process.process_id))
    await asyncio.sleep(0.05)

    called = await poll(environment, process, yield_time_ms=250)

    assert called.details["running"] is False
    await killing


async def test_cancelled_start_leaves_nothing(environment):
    starting = [asyncio.create_task(run(environment, "sleep 60")) for _ in range(8)]
    await asyncio.sleep(0.005)
    for task in starting:
        task.cancel()
    await asyncio.wait(starting)

    assert environment.processes() == []


async def test_watcher_that_fails_holds_no_closing(make_environment, caplog):
    class FailingSink(NullSink):
        def process(self, change):
            if change.change == "exited":
                raise OSError("nobody listens")

    environment = make_environment(sink=FailingSink())

    called = await run(environment, "echo hi")
    await environment.aclose()

    assert called.output == "hi\n"


@pytest.mark.slow
async def test_sixty_fifth_background_command_evicts_the_exited_one(environment):
    processes = [await start(environment, "read x") for _ in range(3)]
    processes += await asyncio.gather(
        *(start(environment, "sleep 100") for _ in range(61))
    )
    exited = processes[1]
    await poll(environment, exited, "\n", yield_time_ms=5000)

    await start(environment, "sleep 100")

    listed = environment.processes()
    assert len(listed) == 64
    assert all(entry["running"] for entry in listed)
    assert "was evicted" in (await poll(environment, exited)).output


async def test_many_starts_at_once_leave_the_loop_free(environment):
    gaps = []

    async def watch():
        loop = asyncio.get_running_loop()
        while True:
            before = loop.time()
            await asyncio.sleep(0)
            gaps.append(loop.time() - before)

    watching = asyncio.create_task(watch())
    called = await asyncio.gather(*(run(environment, "echo hi") for _ in range(24)))
    watching.cancel()

    assert {one.output for one in called} == {"hi\n"}
    assert max(gaps) < 1


def test_null_sink_does_nothing():
    sink = NullSink()

    sink.bind("call", "item")
    sink.write("item", "text")
    sink.open_line("item", "text")
    asyncio.run(sink.drain("item"))
