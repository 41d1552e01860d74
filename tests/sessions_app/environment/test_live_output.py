"""How fast and how evenly output reaches people, and what the model gets of it."""

import asyncio
import resource
import time

import pytest

from sessions_app.environment import AbortSignal
from tests.sessions_app.environment.calls import call, poll, run, start


class StampingSink:
    """Notes the moment of each write."""

    def __init__(self) -> None:
        self.stamps: list[tuple[float, str]] = []

    def bind(self, tool_call_id, item_id):
        pass

    def write(self, item_id, text):
        self.stamps.append((time.time(), text))

    def open_line(self, item_id, text):
        pass

    async def drain(self, item_id):
        pass

    def process(self, change):
        pass


async def test_line_reaches_people_at_once(make_environment):
    sink = StampingSink()
    environment = make_environment(sink=sink)

    await run(environment, "for i in 1 2 3 4 5; do date +%s.%N; sleep .02; done")

    late = sorted(moment - float(text) for moment, text in sink.stamps)
    assert len(late) == 5
    assert late[0] < 0.05  # the process that prints it takes most of this


async def test_open_line_is_shown_before_it_is_sent(make_environment, sink):
    environment = make_environment(sink=sink)

    await run(environment, "printf 'one '; sleep 0.3; echo two")

    assert sink.open_lines[0][1] == "one "
    assert [text for _, text in sink.writes] == ["one ", "two\n"]


async def test_quiet_prompt_is_sent(make_environment, sink):
    environment = make_environment(sink=sink)
    process = await start(environment, "printf 'name? '; read x; echo hi $x")
    assert process.output.startswith("name? \n[process")

    called = await poll(environment, process, "Ada\n", yield_time_ms=5000)

    assert called.output == "hi Ada\n[exit code: 0]"
    assert sink.logs[process.process_id] == "name? hi Ada\n"


async def test_progress_bar_is_one_line(make_environment, sink):
    environment = make_environment(sink=sink)
    cmd = "for i in $(seq 0 100); do printf '\\r%3d%%' $i; sleep .002; done; echo"

    called = await run(environment, cmd)

    assert called.output == "100%\n"
    assert len(sink.writes) == 1
    assert len(sink.open_lines) > 5


async def test_slow_progress_bar_is_still_one_line(environment):
    cmd = "for i in 1 2 3; do printf '\\r%d of 3' $i; sleep .15; done; echo"

    called = await run(environment, cmd)

    assert called.output == "3 of 3\n"


async def test_split_character_is_shown_in_one_piece(environment):
    cmd = "printf '\\xe4\\xbd'; sleep 0.3; printf '\\xa0X'"

    called = await run(environment, cmd)

    assert called.output == "你X"
    assert called.deltas == ["你X"]


async def test_random_bytes_are_storable(environment):
    called = await run(environment, "head -c 2000 /dev/urandom")

    assert "\0" not in called.output
    called.output.encode()


async def test_streams_do_not_mix_inside_a_line(environment):
    cmd = "printf out; echo err >&2; sleep .02; echo put"

    called = await run(environment, cmd)

    assert called.output == "err\noutput\n"


async def test_markup_stays_text(environment):
    markup = "<img src=x onerror=alert(1)><script>alert(2)</script>"

    called = await run(environment, f"echo '{markup}'")

    assert called.output == f"{markup}\n"


async def test_end_of_a_call_follows_the_last_output(make_environment):
    sink = StampingSink()
    environment = make_environment(sink=sink)
    delays = []
    for _ in range(10):
        await run(environment, "sleep 0.02; date +%s.%N")
        delays.append(time.time() - sink.stamps[-1][0])

    assert min(delays) < 0.1


async def longest_gap(watched) -> float:
    """Return the longest time the loop was busy while `watched` ran."""
    gaps = []

    async def watch():
        while True:
            before = time.monotonic()
            await asyncio.sleep(0.001)
            gaps.append(time.monotonic() - before)

    watching = asyncio.create_task(watch())
    await watched
    watching.cancel()
    return sorted(gaps)[-3]  # twice the machine may have been elsewhere


async def test_flood_of_effects_leaves_the_loop_free(environment):
    abort = AbortSignal()
    asyncio.get_running_loop().call_later(1, abort.abort)
    arguments = {"cmd": "yes $'\\r\\033[Kx'"}

    gap = await longest_gap(call(environment, "exec_command", arguments, signal=abort))

    assert gap < 0.2


async def test_flood_of_lines_leaves_the_loop_free(limited):
    environment = limited(timeout_ms=2000)

    gap = await longest_gap(run(environment, "yes", yield_time_ms=1000))

    assert gap < 0.2


async def test_flood_in_the_foreground_costs_little_memory(environment):
    await run(environment, "yes | head -c 20000000")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    called = await run(environment, "yes | head -c 300000000")

    grown_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert called.details["output_chars"] == 300_000_000
    assert called.details["exit_code"] == 0
    assert grown_kib < 48 * 1024


async def test_slow_sink_slows_the_command(make_environment):
    class SlowSink(StampingSink):
        async def drain(self, item_id):
            await asyncio.sleep(0.2)

    environment = make_environment(sink=SlowSink())
    began = time.monotonic()

    called = await run(environment, "yes | head -c 6000000")

    assert called.details["output_chars"] == 6_000_000
    assert time.monotonic() - began > 0.5


@pytest.mark.slow
async def test_five_gigabytes_without_a_cap_stay_bounded(limited):
    environment = limited(max_output_length=-1, timeout_ms=110_000)

    called = await run(environment, "head -c 5G /dev/zero | tr '\\0' x")

    assert called.details["output_chars"] == 5 * 1024**3
    assert len(called.output) < 65 * 1024 * 1024
    assert "the most one call can return" in called.output[-500:]
