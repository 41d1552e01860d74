"""What a poll shows of the output since the last call."""

import asyncio
import hashlib
import re
from pathlib import Path

import pytest

from sessions_app.environment.truncation import PollWindow
from tests.sessions_app.environment.calls import poll, run, start
from traces_app.omnimessage import tool_call


async def test_output_between_calls_comes_once(environment):
    process = await start(environment, "sleep 0.3; echo between; sleep 30")
    await asyncio.sleep(0.4)

    first = await poll(environment, process, yield_time_ms=250)
    second = await poll(environment, process, yield_time_ms=250)

    assert first.output.startswith("between\n[process")
    assert second.output.startswith("[process")


async def test_too_much_shows_both_ends(environment):
    cmd = "read x; seq 1 400000; read x"
    process = await start(environment, cmd)
    await environment.send_input(process.process_id, "\n")
    await asyncio.sleep(1)

    called = await poll(environment, process, yield_time_ms=250)

    text, note = called.output.rsplit("\n[process", 1)
    whole = "".join(f"{n}\n" for n in range(1, 400_001))
    head, omitted, path, tail = re.fullmatch(
        r"(.*?)\n\[(\d+) characters omitted here; full text in (\S+)\]\n(.*)",
        text + "\n",
        re.DOTALL,
    ).groups()
    assert whole.startswith(head)
    assert whole.endswith(tail)
    assert tail.endswith("400000\n")
    assert abs(len(head) - len(tail)) < 400
    assert 15_500 < len(text) + 1 <= 16_000
    assert len(head) + int(omitted) + len(tail) == pytest.approx(len(whole), abs=1)
    assert called.details["truncated"] is True
    assert called.details["output_chars"] == len(whole)
    content = Path(path).read_bytes()
    assert content.decode() == whole
    assert called.details["artifact"] == {
        "path": path,
        "size": len(content),
        "sha256": hashlib.sha256(content).hexdigest(),
    }


async def test_omitted_text_counts_as_read(environment):
    process = await start(environment, "read x; seq 1 20000; read x; echo end")
    await environment.send_input(process.process_id, "\n")
    await asyncio.sleep(0.3)
    await poll(environment, process, yield_time_ms=250)

    called = await poll(environment, process, "\n", yield_time_ms=5000)

    assert called.output == "end\n[exit code: 0]"


async def test_text_of_exactly_the_cap_is_whole(limited):
    environment = limited(max_output_length=1000)
    process = await start(environment, "read x; printf '%01000d' 7")

    called = await poll(environment, process, "\n", yield_time_ms=5000)

    assert called.output == "0" * 999 + "7\n[exit code: 0]"
    assert called.details["truncated"] is False


async def test_one_character_more_leaves_a_gap_within_the_cap(limited):
    environment = limited(max_output_length=1000)
    process = await start(environment, "read x; printf '%01001d' 7")

    called = await poll(environment, process, "\n", yield_time_ms=5000)

    text = called.output.removesuffix("\n[exit code: 0]")
    assert 990 < len(text) <= 1000
    assert text.endswith("0007")
    assert "characters omitted here" in text


async def test_small_cap_shows_the_head_only(limited):
    environment = limited(max_output_length=300)
    process = await start(environment, "read x; seq 1 1000")

    called = await poll(environment, process, "\n", yield_time_ms=5000)

    text, marker, code = called.output.rsplit("\n", 2)
    assert f"{text}\n" == "".join(f"{n}\n" for n in range(1, 1001))[:300]
    assert marker.startswith("[output truncated: 3893 characters produced, 300 kept")
    assert code == "[exit code: 0]"
    assert called.details["truncated"] is True
    assert called.details["output_chars"] == 3893


async def test_disabled_cap_shows_everything(limited):
    environment = limited(max_output_length=0)
    process = await start(environment, "read x; seq 1 30000")

    called = await poll(environment, process, "\n", yield_time_ms=5000)

    assert called.details["output_chars"] == 168_894
    assert called.output.endswith("30000\n[exit code: 0]")


async def test_output_is_streamed_while_a_poll_waits(environment):
    process = await start(environment, "read x; echo one; sleep 0.3; echo two")

    called = await poll(environment, process, "\n", yield_time_ms=5000)

    assert called.deltas == ["one\n", "two\n", "[exit code: 0]"]


async def test_text_that_arrives_while_nobody_pulls_comes_at_the_next_pull(
    environment,
):
    process = await start(environment, "read x; echo one; sleep 0.1; echo two; read x")
    arguments = f'{{"process_id": "{process.process_id}", "chars": "\\n"}}'
    message = tool_call("input_command", arguments, "call_7")
    stream = environment.execute_tool(message)
    loop = asyncio.get_running_loop()
    while getattr((await anext(stream)).payload, "output", "") != "one\n":
        pass
    await asyncio.sleep(0.15)

    began = loop.time()
    second = await anext(stream)

    assert second.payload.output == "two\n"
    assert loop.time() - began < 0.05
    async for _ in stream:
        pass


async def test_spans_of_the_log_follow_each_other(make_environment, sink):
    environment = make_environment(sink=sink)
    process = await start(environment, "echo one; read x; echo two; exit")

    called = await poll(environment, process, "\n", yield_time_ms=5000)

    item = process.process_id
    assert process.details["log"] == {"item": item, "start": 0, "stop": 4}
    assert called.details["log"] == {"item": item, "start": 4, "stop": 8}
    assert sink.logs == {item: "one\ntwo\n"}
    assert sink.bound == [("call_7", item), ("call_7", item)]


async def test_cut_output_of_the_first_call_is_not_shown_again(limited):
    environment = limited(max_output_length=500)
    process = await run(environment, "seq 1 1000; read x; echo end", yield_time_ms=300)
    assert process.details["truncated"] is True
    assert "[output truncated" in process.output

    called = await poll(environment, process, "\n", yield_time_ms=5000)

    assert called.output == "end\n[exit code: 0]"
    assert process.details["artifact"]["path"].endswith(f"/{process.process_id}.txt")


@pytest.mark.slow
async def test_unread_flood_is_slowed_down_and_never_stops(environment):
    process = await run(environment, "yes", yield_time_ms=300)
    before = process.details["log"]["stop"]
    await asyncio.sleep(2)

    called = await poll(environment, process, yield_time_ms=250)

    grown = called.details["log"]["stop"] - before
    assert 2 * 1024 * 1024 < grown < 64 * 1024 * 1024
    assert called.details["running"] is True


class TestPollWindow:
    @pytest.mark.parametrize("cap", [400, 401, 1000, 16_000, 64 * 1024 * 1024])
    @pytest.mark.parametrize("before", ["", "x", "x\n"])
    def test_both_ends_and_the_marker_stay_within_the_cap(self, cap, before):
        window = PollWindow(cap, path_length=60)

        marker, length = window.gap(before, total=cap + 1, artifact=None)

        assert cap - 8 <= window.head + len(marker) + length <= cap
        assert length <= window.tail
        omitted = int(re.search(r"\d+", marker).group())
        assert window.head + omitted + length == cap + 1

    @pytest.mark.parametrize("cap", [1, 100, 399])
    def test_below_its_least_cap_it_is_the_head(self, cap):
        window = PollWindow(cap, path_length=60)

        assert (window.head, window.tail, window.is_split) == (cap, 0, False)

    def test_long_path_leaves_the_head_only(self):
        assert PollWindow(500, path_length=400).is_split is False
