"""input_command: typing into a running command, and how its end is told."""

import asyncio
import time

import pytest

from sessions_app.environment import AbortSignal
from tests.sessions_app.environment.calls import call, poll, run, start
from traces_app.omnimessage import StopReason


async def ended(environment, cmd, *, after_s=0.35):
    """Start a command that has ended by itself when this returns."""
    process = await start(environment, cmd)
    await asyncio.sleep(after_s)
    return process


async def test_typed_line_is_answered(environment):
    process = await start(environment, "read line; echo got:$line")

    called = await poll(environment, process, "penguin\n")

    assert called.output == "got:penguin\n[exit code: 0]"
    assert called.stop_reason is StopReason.COMPLETED
    assert called.details["delivered_chars"] == 8
    assert called.details["exit_code"] == 0
    assert called.details["running"] is False
    assert called.details["process_id"] == process.process_id


async def test_empty_poll_reads_the_rest_and_types_nothing(environment):
    process = await start(environment, "for i in 1 2 3; do sleep .2; echo $i; done")

    called = await poll(environment, process)

    assert called.output.endswith("3\n[exit code: 0]")
    assert "delivered_chars" not in called.details


async def test_running_process_is_said_to_run(environment):
    process = await start(environment, "sleep 30")

    called = await poll(environment, process, yield_time_ms=250)

    assert called.output == (
        f"[process still running with process_id {process.process_id}]"
    )
    assert called.stop_reason is StopReason.COMPLETED
    assert called.details["running"] is True


@pytest.mark.slow
async def test_empty_poll_waits_five_seconds_by_default(environment):
    process = await start(environment, "sleep 30")
    began = time.monotonic()

    await poll(environment, process)

    assert 4.9 < time.monotonic() - began < 8


async def test_typing_waits_a_quarter_of_a_second_by_default(environment):
    process = await start(environment, "sleep 30")
    began = time.monotonic()

    await poll(environment, process, "x")

    assert 0.24 < time.monotonic() - began < 2


async def test_wait_ends_before_the_timeout(limited):
    environment = limited(timeout_ms=1200)
    process = await start(environment, "sleep 30")
    began = time.monotonic()

    called = await poll(environment, process, yield_time_ms=99_999)

    assert time.monotonic() - began < 1.2
    assert called.details["running"] is True


async def test_ctrl_c_ends_a_process(environment):
    process = await start(environment, "sleep 30")

    called = await poll(environment, process, "\x03", yield_time_ms=5000)

    assert called.output == "[terminated by signal SIGINT]"
    assert called.stop_reason is StopReason.FAILED
    assert called.details["signal"] == "SIGINT"
    assert called.details["delivered_chars"] == 1


@pytest.mark.parametrize("chars", ["q\x03", "\x03\x03", "\x04\n", "\x03\x04"])
async def test_control_character_must_be_sent_alone(environment, chars):
    process = await start(environment, "cat")

    called = await poll(environment, process, chars)

    assert called.stop_reason is StopReason.FAILED
    assert "alone" in called.output
    assert (await poll(environment, process, yield_time_ms=250)).details["running"]


@pytest.mark.parametrize("chars", ["", "typed\n", "q\x03"])
async def test_refused_call_tells_how_the_process_stands(environment, chars):
    process = await start(environment, "cat")
    other = asyncio.create_task(poll(environment, process, yield_time_ms=600))
    await asyncio.sleep(0.1)

    refused = await poll(environment, process, chars)

    assert refused.stop_reason is StopReason.FAILED
    assert refused.details["running"] is True
    assert refused.details["process_id"] == process.process_id
    assert refused.details.get("delivered_chars") == (0 if chars else None)
    assert "typed" not in (await other).output


async def test_write_to_nothing_delivers_nothing(environment):
    arguments = {"process_id": "proc-00000000", "chars": "typed\n"}

    refused = await call(environment, "input_command", arguments)

    assert refused.stop_reason is StopReason.FAILED
    assert refused.details["running"] is False
    assert refused.details["delivered_chars"] == 0


async def test_trapped_ctrl_c_leaves_the_process_running(environment):
    cmd = "trap 'echo trapped' INT; while :; do sleep 0.05; done"
    process = await start(environment, cmd)

    called = await poll(environment, process, "\x03", yield_time_ms=500)

    assert called.output.startswith("trapped\n[process still running")
    assert called.stop_reason is StopReason.COMPLETED


async def test_end_of_input_lets_a_reader_finish(environment):
    process = await start(environment, "wc -l")
    await poll(environment, process, "a\nb\n")

    called = await poll(environment, process, "\x04", yield_time_ms=5000)

    assert called.output == "2\n[exit code: 0]"


async def test_typing_after_the_end_of_input_is_told(environment):
    process = await start(environment, "sleep 30")
    first = await poll(environment, process, "\x04")

    typed = await poll(environment, process, "x")
    again = await poll(environment, process, "\x04")

    assert first.details["delivered_chars"] == 1
    for called in (typed, again):
        assert called.details["delivered_chars"] == 0
        assert "not delivered" in called.output
        assert called.details["running"] is True


async def test_process_that_closed_its_input_is_told(environment):
    process = await start(environment, "exec <&-; sleep 30")

    called = await poll(environment, process, "x")

    assert called.details["delivered_chars"] == 0
    assert "not delivered" in called.output


async def test_what_a_full_pipe_does_not_take_is_withdrawn(environment):
    process = await start(environment, "sleep 1; wc -c")

    called = await poll(environment, process, "x" * 200_000, yield_time_ms=250)
    await poll(environment, process, "\x04", yield_time_ms=250)
    counted = await poll(environment, process, yield_time_ms=5000)

    delivered = called.details["delivered_chars"]
    assert 0 < delivered < 200_000
    assert f"{delivered} of 200000 characters" in called.output
    assert counted.output.split()[0] == str(delivered)


async def test_input_larger_than_the_pipe_arrives_when_it_is_read(environment):
    text = "pinguïn\U0001f427" * 30_000
    process = await start(environment, "wc -m")

    called = await poll(environment, process, text, yield_time_ms=1500)
    counted = await poll(environment, process, "\x04", yield_time_ms=5000)

    assert called.details["delivered_chars"] == len(text)
    assert counted.output.split()[0] in {str(len(text)), str(len(text.encode()))}


async def test_half_a_surrogate_pair_is_typed_as_replacement(environment):
    process = await start(environment, "head -c 4 | od -An -tx1")

    arguments = f'{{"process_id": "{process.process_id}", "chars": "\\ud800\\n"}}'
    called = await call(environment, "input_command", arguments)

    assert called.output.startswith(" ef bf bd 0a")


async def test_input_that_came_too_late_is_told_with_the_exit(environment):
    process = await ended(environment, "sleep 0.3; echo last; exit 3")

    called = await poll(environment, process, "x\n")

    first, statement, code = called.output.split("\n")
    assert first == "last"
    assert "not delivered" in statement
    assert code == "[exit code: 3]"
    assert called.stop_reason is StopReason.FAILED
    assert called.details["delivered_chars"] == 0


async def test_reply_comes_as_soon_as_the_command_exits(environment):
    process = await start(environment, "sleep 0.5; exit 5")
    began = time.monotonic()

    called = await poll(environment, process, yield_time_ms=10_000)

    assert time.monotonic() - began < 5
    assert called.output == "[exit code: 5]"
    assert called.stop_reason is StopReason.FAILED


async def test_exit_is_told_once_more_in_other_words(environment):
    process = await ended(environment, "sleep 0.3; exit 5")
    await poll(environment, process)

    called = await poll(environment, process)

    assert "already exited with code 5" in called.output
    assert called.stop_reason is StopReason.COMPLETED
    assert called.details["exit_code"] == 5
    assert called.details["running"] is False


async def test_death_by_signal_is_told_once_more(environment):
    process = await start(environment, "sleep 30")
    await poll(environment, process, "\x03", yield_time_ms=5000)

    called = await poll(environment, process)

    assert "already terminated by signal SIGINT" in called.output
    assert called.details["signal"] == "SIGINT"


async def test_descendant_that_holds_the_pipe_does_not_hide_the_exit(environment):
    process = await start(environment, "(sleep 60 &) ; sleep 0.4")

    called = await poll(environment, process, yield_time_ms=5000)

    assert called.output == "[exit code: 0]"


async def test_unknown_id_is_named_with_the_live_ones(environment):
    process = await start(environment, "sleep 30")

    called = await poll(environment, "proc-00000000")

    assert called.stop_reason is StopReason.FAILED
    assert "proc-00000000" in called.output
    assert process.process_id in called.output
    assert called.details["running"] is False


async def test_id_of_another_session_is_unknown(make_environment):
    theirs = await start(make_environment(), "sleep 30")

    called = await poll(make_environment(), theirs)

    assert "unknown process_id" in called.output


async def test_process_in_the_foreground_is_unknown(environment, sink):
    environment._table._sink = sink
    running = asyncio.create_task(run(environment, "sleep 0.4"))
    await asyncio.sleep(0.1)
    process_id = environment.processes()[0]["process_id"]

    called = await poll(environment, process_id)

    assert "unknown process_id" in called.output
    await running


@pytest.mark.parametrize(
    ("reason", "words", "stop_reason"),
    [
        ("lost", "was lost", "failed"),
        ("evicted", "was evicted", "failed"),
        ("exited 3", "already exited with code 3", "completed"),
        ("exited SIGKILL", "terminated by signal SIGKILL", "completed"),
    ],
)
async def test_ids_from_before_get_their_own_answers(
    make_environment, reason, words, stop_reason
):
    environment = make_environment(lost_processes={"proc-12345678": reason})

    called = await poll(environment, "proc-12345678")

    assert words in called.output
    assert called.stop_reason == stop_reason
    assert called.details["running"] is False


async def test_one_poll_at_a_time(environment):
    process = await start(environment, "sleep 30")
    first = asyncio.create_task(poll(environment, process, yield_time_ms=600))
    await asyncio.sleep(0.1)

    second = await poll(environment, process, yield_time_ms=250)

    assert second.stop_reason is StopReason.FAILED
    assert "one at a time" in second.output
    assert (await first).stop_reason is StopReason.COMPLETED
    third = await poll(environment, process, yield_time_ms=250)
    assert third.stop_reason is StopReason.COMPLETED


async def test_fired_signal_sends_no_ctrl_c(environment):
    process = await start(environment, "sleep 30")
    signal = AbortSignal()
    signal.abort()
    arguments = {"process_id": process.process_id, "chars": "\x03"}

    called = await call(environment, "input_command", arguments, signal=signal)

    assert called.stop_reason is StopReason.ABORTED
    assert (await poll(environment, process, yield_time_ms=250)).details["running"]


async def test_interrupt_while_typing_tells_what_was_delivered(environment):
    process = await start(environment, "sleep 30")
    signal = AbortSignal()
    asyncio.get_running_loop().call_later(0.1, signal.abort)
    arguments = {
        "process_id": process.process_id,
        "chars": "x" * 100_000,
        "yield_time_ms": 10_000,
    }

    called = await call(environment, "input_command", arguments, signal=signal)

    assert called.stop_reason is StopReason.ABORTED
    assert 0 < called.details["delivered_chars"] < 100_000


async def test_person_types_without_a_call(environment):
    process = await start(environment, 'printf "pw: "; read p; echo len=${#p}')

    delivered = await environment.send_input(process.process_id, "secret\n")
    called = await poll(environment, process)

    assert delivered == 7
    assert "len=6" in called.output
    assert "secret" not in called.output


async def test_typing_into_nothing_delivers_nothing(environment):
    assert await environment.send_input("proc-00000000", "x") == 0
