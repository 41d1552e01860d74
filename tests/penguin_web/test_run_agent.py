"""`manage.py run_agent` as a process: signals, pipes, beside a server, first of all."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.site import ROOT, Site

pytestmark = pytest.mark.slow


@pytest.fixture
def start() -> Iterator[Callable[..., subprocess.Popen]]:
    """Start tasks; none of them outlives the test."""
    tasks: list[subprocess.Popen] = []

    def start(site: Site, *arguments: str, cwd: Path = ROOT) -> subprocess.Popen:
        task = subprocess.Popen(
            [sys.executable, str(ROOT / "manage.py"), "run_agent", *arguments],
            env=site.environment,
            cwd=cwd,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        tasks.append(task)
        return task

    yield start
    for task in tasks:
        if task.poll() is None:
            task.kill()
        task.wait()
        for stream in (task.stdin, task.stdout, task.stderr):
            stream.close()


def first(stream, word: str) -> str:
    """Read lines until one holds the word."""
    for line in stream:
        if word in line:
            return line
    raise AssertionError(f"{word} never came")


def until(look, within_s: float = 30):
    deadline = time.monotonic() + within_s
    while not (found := look()):
        assert time.monotonic() < deadline, "it never came"
        time.sleep(0.05)
    return found


def ended(task: subprocess.Popen) -> tuple[str, str]:
    """Return what it printed; its standard input stays open until it is gone."""
    task.wait(timeout=30)
    return task.communicate()


def runs(words: str) -> bool:
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                text = (entry / "cmdline").read_text().replace("\0", " ")
            except OSError:
                continue
            if words in text and "run_agent" not in text:
                return True
    return False


def test_on_a_fresh_database_several_may_be_first(tmp_path, start):
    site = Site(folder=tmp_path / "site", password="")
    site.folder.mkdir()

    tasks = [start(site, "-m", f"say number {n}") for n in range(3)]

    for number, task in enumerate(tasks):
        out, err = task.communicate(timeout=60)
        assert (task.returncode, out) == (0, f"number {number}\n"), err


def test_it_works_where_the_caller_stands(make_site, tmp_path, start):
    folder = tmp_path / "here"
    folder.mkdir()

    task = start(make_site(), "-m", "$ pwd > place", cwd=folder)
    _, err = task.communicate(timeout=60)

    assert task.returncode == 0, err
    assert (folder / "place").read_text().strip() == str(folder)


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("-m",),
        ("-m", "x", "--approve", "maybe"),
        ("-m", "x", "--thinking", "hard"),
        ("-m", "x", "--colour"),
        ("-m", ""),
        ("-m", "x", "--workspace", "/no/such/folder"),
    ],
)
def test_wrong_usage_exits_with_two(make_site, arguments):
    done = make_site().manage("run_agent", *arguments)

    assert done.returncode == 2
    assert done.stdout == "" and done.stderr


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)]
)
def test_a_signal_settles_like_stop_and_leaves_no_command(
    make_site, number, code, start
):
    site = make_site()
    mark = f"60.{os.getpid()}{int(number)}"
    task = start(site, "--json", "-m", f"$ echo begin; sleep {mark}")
    first(task.stdout, "begin")
    first(task.stdout, "begin\\n")
    assert runs(f"sleep {mark}")

    task.send_signal(number)
    out, err = task.communicate(timeout=30)

    assert task.returncode == code, err
    assert not runs(f"sleep {mark}")
    payloads = [json.loads(line)["payload"] for line in out.splitlines()]
    output = next(p for p in payloads if p["type"] == "tool_call_output")
    assert output["stop_reason"] == "aborted"
    assert payloads[-1] == {"type": "abort", "reason": "interrupted by the user"}
    assert site.manage("verify_trace", "--all").returncode == 0


def test_ctrl_c_takes_a_question_back(make_site, start):
    task = start(make_site(), "--approve", "always-ask", "-m", "$ echo hi")
    first(task.stderr, "asked because")

    task.send_signal(signal.SIGINT)
    out, err = ended(task)

    assert task.returncode == 130, err
    assert "[interrupted: tool aborted by user]" in out


def test_a_reader_that_leaves_ends_it_quietly(make_site, start):
    task = start(make_site(), "-m", "$ echo hi\nthen\n$ sleep 60")
    first(task.stdout, "hi")
    task.stdout.close()

    task.send_signal(signal.SIGINT)
    assert task.wait(timeout=30) in (130, 141)
    assert "Traceback" not in task.stderr.read()


def test_a_command_left_in_the_background_is_ended(make_site):
    mark = f"61.{os.getpid()}"
    arguments = json.dumps({"cmd": f"sleep {mark}", "yield_time_ms": 250})

    done = make_site().manage("run_agent", "-m", f"call exec_command {arguments}")

    assert done.returncode == 0, done.stderr
    assert "still running" in done.stdout
    assert not runs(f"sleep {mark}")


def test_beside_a_server_its_calls_can_be_decided_there(served, start):
    task = start(served, "--approve", "always-ask", "--json", "-m", "$ echo hi")
    with served.api() as api:
        (card,) = until(lambda: api.get("approvals?status=pending").json())
        session = api.get(f"sessions/{card['session']}").json()
        assert session["status"] == "waiting"

        answer = api.post(
            f"sessions/{card['session']}/approvals/{card['tool_call_id']}",
            json={"decision": "allow"},
        )

        assert answer.status_code == 200, answer.text
        out, err = ended(task)
        assert task.returncode == 0, err
        payloads = [json.loads(line)["payload"] for line in out.splitlines()]
        decided = next(p for p in payloads if p.get("type") == "approval_decision")
        assert (decided["via"], decided["decided_by"]) == ("api", "admin")
        after = api.post(f"sessions/{card['session']}/tasks", json={"text": "say on"})
        assert after.status_code == 202, after.text
        until(lambda: api.get(f"sessions/{card['session']}").json()["status"] == "idle")


def test_beside_a_server_a_mode_change_there_decides_what_waits(served, start):
    task = start(served, "--approve", "always-ask", "-m", "$ echo hi")
    with served.api() as api:
        (card,) = until(lambda: api.get("approvals?status=pending").json())

        changed = api.patch(
            f"sessions/{card['session']}", json={"approval_mode": "allow-all"}
        )

        assert changed.status_code == 200, changed.text
    out, err = ended(task)
    assert task.returncode == 0, err
    assert "hi\n" in out
    assert "No answer needed any more" in err
