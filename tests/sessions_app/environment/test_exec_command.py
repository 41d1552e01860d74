"""exec_command: what a command gives back, and when."""

import json
import re
import time
from pathlib import Path

import pytest

from tests.sessions_app.environment.calls import call, poll, run, start
from traces_app.omnimessage import StopReason


async def test_command_writes_in_the_workspace(environment, workspace):
    called = await run(environment, "printf 'Hello, Penguin' > note.txt")

    assert (workspace / "note.txt").read_text() == "Hello, Penguin"
    assert called.output == "[no output]"
    assert called.stop_reason is StopReason.COMPLETED
    assert called.details["exit_code"] == 0
    assert called.details["running"] is False
    assert "process_id" not in called.details


async def test_both_streams_are_shown(environment):
    called = await run(environment, "echo out; echo err 1>&2")

    assert sorted(called.output.splitlines()) == ["err", "out"]


async def test_lines_are_streamed_as_they_are_printed(environment):
    called = await run(environment, "echo first; sleep 0.3; echo second")

    assert called.deltas == ["first\n", "second\n"]


async def test_exit_code_is_a_note_and_a_fact(environment):
    called = await run(environment, "echo hi; exit 3")

    assert called.output == "hi\n[exit code: 3]"
    assert called.deltas[-1] == "[exit code: 3]"
    assert called.stop_reason is StopReason.FAILED
    assert called.details["exit_code"] == 3


async def test_note_begins_a_new_line(environment):
    called = await run(environment, "printf hi; exit 3")

    assert called.output == "hi\n[exit code: 3]"


async def test_unknown_command_gives_the_words_of_the_shell(environment):
    called = await run(environment, "no-such-program")

    assert "command not found" in called.output
    assert called.details["exit_code"] == 127


async def test_death_by_signal_is_named(environment):
    called = await run(environment, "kill -TERM $$")

    assert called.output == "[terminated by signal SIGTERM]"
    assert called.stop_reason is StopReason.FAILED
    assert called.details["signal"] == "SIGTERM"
    assert "exit_code" not in called.details


async def test_unnamed_signal_has_its_number(environment):
    called = await run(environment, "kill -40 $$")

    assert called.details["signal"] == "SIG40"


async def test_exit_of_a_pipe_is_that_of_its_last_part(environment):
    called = await run(environment, "sh -c 'echo out; exit 1' | tail -1")

    assert called.output == "out\n"
    assert called.details["exit_code"] == 0


async def test_default_directory_is_the_workspace(environment, workspace):
    for workdir in [{}, {"workdir": ""}]:
        called = await run(environment, "pwd", **workdir)
        assert called.output == f"{workspace}\n"


async def test_relative_directory_starts_at_the_workspace(environment, workspace):
    (workspace / "sub").mkdir()

    called = await run(environment, "pwd", workdir="sub")

    assert called.output == f"{workspace / 'sub'}\n"


async def test_absolute_directory_is_taken_as_it_is(environment, tmp_path):
    called = await run(environment, "pwd", workdir=str(tmp_path))

    assert called.output == f"{tmp_path}\n"


@pytest.mark.parametrize(
    ("workdir", "words"),
    [("missing", "does not exist"), ("file", "not a directory"), ("a\0b", "NUL")],
)
async def test_unusable_directory_is_named(environment, workspace, workdir, words):
    (workspace / "file").touch()

    called = await run(environment, "pwd", workdir=workdir)

    assert called.stop_reason is StopReason.FAILED
    assert words in called.output
    if "\0" not in workdir:
        assert str(workspace / workdir) in called.output


async def test_vanished_workspace_is_named(environment, workspace):
    workspace.rmdir()

    called = await run(environment, "pwd")

    assert str(workspace) in called.output
    assert called.stop_reason is StopReason.FAILED


@pytest.mark.parametrize("cmd", ["touch made\0", "touch made \ud800"])
async def test_command_no_shell_can_get_is_refused(environment, workspace, cmd):
    called = await run(environment, cmd)

    assert called.stop_reason is StopReason.FAILED
    assert list(workspace.iterdir()) == []


async def test_nul_in_a_command_is_told(environment):
    assert "NUL" in (await run(environment, "a\0b")).output


async def test_too_long_command_is_told_with_a_remedy(environment):
    called = await run(environment, "echo " + "x" * 200_000)

    assert "too long" in called.output
    assert called.stop_reason is StopReason.FAILED


async def test_every_call_is_a_fresh_shell(environment, workspace):
    await run(environment, "cd /; export KEPT=1")

    called = await run(environment, "pwd; echo ${KEPT:-gone}")

    assert called.output == f"{workspace}\ngone\n"


async def test_there_is_no_terminal(environment):
    called = await run(environment, "tty; test -t 0 || test -t 1 || echo none")

    assert called.output == "not a tty\nnone\n"


async def test_silent_command_yields_with_an_id(environment):
    began = time.monotonic()

    called = await run(environment, "sleep 30", yield_time_ms=300)

    assert 0.3 <= time.monotonic() - began < 2
    assert called.stop_reason is StopReason.COMPLETED
    assert re.fullmatch(r"proc-[0-9a-f]{8}", called.process_id)
    assert called.output == (
        f"[process still running with process_id {called.process_id}]"
    )
    assert called.details["running"] is True
    assert [p["running"] for p in environment.processes()] == [True]


@pytest.mark.parametrize("wait_ms", [0, -5, 249.5])
async def test_shortest_wait_is_a_quarter_of_a_second(environment, wait_ms):
    began = time.monotonic()

    called = await run(environment, "echo a; sleep 5", yield_time_ms=wait_ms)

    assert 0.24 <= time.monotonic() - began < 2
    assert called.output.startswith("a\n[process still running")


@pytest.mark.parametrize("wait_ms", [99_999, 1e308, 10**400])
async def test_wait_ends_before_the_timeout(limited, wait_ms):
    environment = limited(timeout_ms=1300)
    arguments = json.dumps({"cmd": "sleep 5", "yield_time_ms": 1})
    text = arguments.replace("1}", f"{wait_ms}}}")

    called = await call(environment, "exec_command", text)

    assert called.stop_reason is StopReason.COMPLETED
    assert called.details["running"] is True


async def test_command_within_the_default_wait_has_no_id(environment):
    called = await run(environment, "sleep 0.4; echo done")

    assert called.output == "done\n"
    assert "process_id" not in called.details


async def test_exit_of_the_shell_counts_not_the_end_of_its_pipes(environment):
    began = time.monotonic()

    called = await run(environment, "(sleep 5; echo late) & echo hello")

    assert time.monotonic() - began < 2
    assert called.output == "hello\n"


async def test_chatty_background_child_does_not_pin_the_call(environment):
    cmd = "(while :; do echo tick; sleep .05; done) & sleep 0.3; echo fg"
    began = time.monotonic()

    called = await run(environment, cmd)

    assert time.monotonic() - began < 3
    assert "fg\n" in called.output
    assert called.details["exit_code"] == 0


async def test_flooding_background_child_does_not_pin_the_call(environment):
    began = time.monotonic()

    called = await run(environment, "yes & sleep 0.1; exit 3")

    assert time.monotonic() - began < 5
    assert called.details["exit_code"] == 3


async def test_last_output_before_the_exit_is_complete(environment):
    called = await run(environment, "head -c 900000 /dev/zero | tr '\\0' x")

    assert called.details["output_chars"] == 900_000


async def test_last_output_with_effects_is_complete(limited):
    environment = limited(max_output_length=0)
    cmd = "for i in 1 2 3 4; do cat big; done"
    workspace_file = "printf '%05d\\r\\033[32mx\\n' $(seq 1 20000) > big; "

    called = await run(environment, workspace_file + cmd)

    assert called.output.splitlines()[-1] == "x0000"
    assert called.output.count("\n") == 80_000


async def test_head_is_kept_and_the_file_holds_all(environment):
    called = await run(environment, "seq 1 20000; exit 7")

    text, truncation, code = called.output.rsplit("\n", 2)
    assert text == "".join(f"{n}\n" for n in range(1, 20_001))[:16_000]
    assert code == "[exit code: 7]"
    path = re.search(r"/\S+\.txt", truncation).group()
    again = await run(environment, f"tail -n 3 {path}")
    assert again.output == "19998\n19999\n20000\n"
    assert called.details["artifact"]["path"] == path


async def test_huge_output_keeps_both_ends_in_its_file(environment):
    cmd = "echo first; head -c 20000000 /dev/zero | tr '\\0' x; echo; echo last"

    called = await run(environment, cmd)

    content = Path(called.details["artifact"]["path"]).read_text()
    assert content.startswith("first\nx")
    assert content.endswith("x\nlast\n")
    gap = re.search(r"\n\[(\d+) characters missing here\]\n", content)
    kept = len(content) - len(gap.group())
    assert kept == 16 * 1024 * 1024
    assert int(gap.group(1)) == called.details["output_chars"] - kept
    assert f"all but {gap.group(1)} characters in" in called.output


async def test_output_that_fits_leaves_no_file(make_environment, tmp_path):
    environment = make_environment(artifact_dir=tmp_path / "kept")

    await run(environment, "echo hi")

    assert not (tmp_path / "kept").exists()


async def test_output_larger_than_memory_that_fits_leaves_no_file(limited, tmp_path):
    environment = limited(max_output_length=0, artifact_dir=tmp_path / "kept")

    called = await run(environment, "head -c 900000 /dev/zero | tr '\\0' x")

    assert called.details["truncated"] is False
    assert list((tmp_path / "kept").iterdir()) == []


async def test_span_of_the_log_is_told(environment, sink, make_environment):
    environment = make_environment(sink=sink)

    called = await run(environment, "echo hello", yield_time_ms=1000)

    item = called.details["log"]["item"]
    assert called.details["log"] == {"item": item, "start": 0, "stop": 6}
    assert sink.bound == [("call_7", item)]
    assert sink.logs == {item: "hello\n"}


async def test_open_line_older_than_a_moment_is_returned(environment):
    called = await run(environment, "printf 'name? '; sleep 5", yield_time_ms=500)

    assert called.output.startswith("name? \n[process still")


async def test_open_line_of_the_last_moment_waits_for_the_poll(environment):
    called = await run(
        environment, "sleep 0.25; while :; do printf .; done", yield_time_ms=250
    )
    assert called.details["running"]

    rest = await poll(environment, called, yield_time_ms=300)

    assert rest.output.startswith(".")


async def test_reading_a_closed_session_fails(environment):
    await environment.aclose()

    called = await run(environment, "touch made")

    assert called.stop_reason is StopReason.FAILED
    assert "closed" in called.output


async def test_words_in_the_text_mean_nothing(environment):
    text = "npm run dev; flask run; rm -rf /"

    called = await run(environment, f'echo "{text}"')

    assert called.output == f"{text}\n"


async def test_named_pipe_without_writer_hangs_nobody(environment):
    for _ in range(3):
        called = await run(
            environment, "rm -f f; mkfifo f; timeout 0.1 cat f; echo Exit:$?"
        )
        assert called.output == "Exit:124\n"


async def test_dev_stdin_as_a_file_is_read(environment):
    called = await run(environment, "seq 2 | cat < /dev/stdin")

    assert called.output == "1\n2\n"


@pytest.mark.parametrize(
    ("profile", "expected"),
    [
        ("set -o noclobber\n", "hi\n"),
        ("echo BANNER\n", "BANNER\nhi\n"),
        ("exit 3\n", "[exit code: 3]"),
    ],
)
async def test_odd_login_profile_does_not_hang(environment, home, profile, expected):
    (home / ".bash_profile").write_text(profile)

    called = await run(environment, "echo hi", yield_time_ms=5000)

    assert called.output == expected


async def test_profile_that_reads_only_waits(environment, home):
    (home / ".bash_profile").write_text("read x\n")

    called = await start(environment, "echo hi")
    rest = await poll(environment, called, "\n", yield_time_ms=3000)

    assert rest.output == "hi\n[exit code: 0]"
