"""Nothing a command started outlives it where it must not."""

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
import time
import uuid
from pathlib import Path

import pytest

from sessions_app.environment import AbortSignal
from sessions_app.environment.process_group import sweep
from sessions_app.environment.process_stat import ProcessStat, all_processes
from tests.sessions_app.environment.calls import call, run, start


@pytest.fixture
def mark() -> str:
    """A word that only this test's processes carry in their command line."""
    return f"mark{uuid.uuid4().hex}"


def living(mark: str) -> list[int]:
    """Return the pids of living processes with the mark in their command line."""
    found = []
    for stat in all_processes():
        if stat.is_zombie or stat.pid == os.getpid():
            continue
        try:
            cmdline = Path(f"/proc/{stat.pid}/cmdline").read_bytes()
        except OSError:
            continue
        if mark.encode() in cmdline:
            found.append(stat.pid)
    return found


async def gone(mark: str, within_s: float = 5) -> bool:
    """Wait until no process carries the mark."""
    deadline = time.monotonic() + within_s
    while living(mark):
        if time.monotonic() > deadline:
            return False
        await asyncio.sleep(0.02)
    return True


def own_zombies() -> list[int]:
    children = subprocess.run(
        ["ps", "-o", "pid=,stat=", "--ppid", str(os.getpid())],
        capture_output=True,
        text=True,
    ).stdout
    return [line for line in children.splitlines() if "Z" in line.split()[1]]


def open_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def sleeper(mark: str) -> str:
    return f"bash -c 'sleep 60; : {mark}'"


async def test_background_child_ends_with_its_shell(environment, mark):
    began = time.monotonic()

    called = await run(environment, f"nohup {sleeper(mark)} & echo x")

    assert "x\n" in called.output
    assert time.monotonic() - began < 1
    assert await gone(mark)


async def test_interrupt_ends_the_whole_group(environment, mark):
    abort = AbortSignal()
    asyncio.get_running_loop().call_later(0.2, abort.abort)
    cmd = f"{sleeper(mark)} & {sleeper(mark)}"

    await call(environment, "exec_command", {"cmd": cmd}, signal=abort)

    assert await gone(mark)


async def test_timeout_ends_the_whole_group(limited, mark):
    await run(limited(timeout_ms=200), f"{sleeper(mark)} & {sleeper(mark)}")

    assert await gone(mark)


async def test_group_that_ignores_sigterm_is_killed(environment, mark):
    abort = AbortSignal()
    asyncio.get_running_loop().call_later(0.2, abort.abort)
    stubborn = f"bash -c 'trap \"\" TERM; sleep 600 & sleep 600; : {mark}'"
    began = time.monotonic()

    await call(environment, "exec_command", {"cmd": stubborn}, signal=abort)

    assert time.monotonic() - began < 1
    assert await gone(mark)


async def test_stubborn_child_of_a_shell_that_exited_is_killed(environment, mark):
    cmd = f"bash -c 'trap \"\" TERM; while :; do sleep 1; done; : {mark}' & echo x"

    await run(environment, cmd)

    assert await gone(mark)


async def test_closing_ends_background_commands(environment, mark):
    await start(environment, f"{sleeper(mark)} | cat")

    await environment.aclose()

    assert living(mark) == []


async def test_closing_ends_what_left_its_group(environment, mark):
    await run(environment, f"setsid {sleeper(mark)} >/dev/null 2>&1 & sleep 0.2")
    assert living(mark)

    await environment.aclose()

    assert living(mark) == []


async def test_process_that_left_its_group_and_holds_a_pipe_is_listed(
    environment, mark, workspace
):
    await run(environment, f"setsid {sleeper(mark)} & sleep 0.2")
    while not (escaped := environment.processes()):
        await asyncio.sleep(0.02)

    entry = next(entry for entry in escaped if mark in entry["cmd"])
    assert entry["escaped"] is True
    assert entry["process_id"] is None
    assert entry["running"] is True
    assert entry["cwd"] == str(workspace)
    assert entry["started_at"].endswith("Z")
    await environment.aclose()
    assert environment.processes() == []


async def test_command_leaves_no_zombie(environment):
    await run(environment, "true")
    await run(environment, "exit 3")
    await environment.aclose()

    assert own_zombies() == []


async def test_interrupted_command_leaves_no_zombie(limited):
    environment = limited(timeout_ms=200)
    await run(environment, "sleep 30")
    await environment.aclose()

    assert own_zombies() == []


async def test_closing_twice_and_at_once_is_harmless(environment, mark):
    await start(environment, sleeper(mark))

    await asyncio.gather(environment.aclose(), environment.aclose())
    await environment.aclose()

    assert living(mark) == []


async def test_cancelled_closing_goes_on(environment, mark):
    cmd = f"bash -c 'trap \"\" TERM; while :; do sleep 1; done; : {mark}'"
    await start(environment, cmd)
    closing = asyncio.create_task(environment.aclose())
    await asyncio.sleep(0.1)
    closing.cancel()

    assert await gone(mark)


async def test_cancelled_consumer_leaves_no_process(environment, mark):
    task = asyncio.create_task(run(environment, sleeper(mark)))
    while not living(mark):
        await asyncio.sleep(0.01)
    task.cancel()

    assert await gone(mark)


async def test_open_descriptors_do_not_grow(environment):
    await run(environment, "true")
    await asyncio.sleep(0.05)
    before = open_descriptors()

    for cmd in ["true", "exit 3", "(sleep 9 &)", "setsid sleep 0.1 &", "seq 1 99999"]:
        await run(environment, cmd)
    await environment.aclose()

    assert open_descriptors() <= before


def test_sweep_ends_what_a_dead_server_left(tmp_path, mark):
    owner = f"owner-{mark}"
    script = textwrap.dedent(
        f"""
        import asyncio, json, os, signal
        from sessions_app.environment import Environment, default_tool_definitions
        from traces_app.omnimessage import tool_call

        async def main():
            environment = Environment(
                {str(tmp_path)!r}, default_tool_definitions(), owner_tag={owner!r}
            )
            cmd = "setsid {sleeper(mark)} & {sleeper(mark)}"
            text = json.dumps({{"cmd": cmd, "yield_time_ms": 300}})
            async for _ in environment.execute_tool(tool_call("exec_command", text, "c")):
                pass
            os.kill(os.getpid(), signal.SIGKILL)

        asyncio.run(main())
        """
    )
    done = subprocess.run([sys.executable, "-c", script], timeout=60)
    assert done.returncode == -signal.SIGKILL
    assert len(living(mark)) >= 2

    killed = sweep(owner)

    assert len(killed) >= 2
    assert living(mark) == []
    assert sweep(owner) == []


def test_own_process_is_read_from_proc():
    stat = ProcessStat.read(os.getpid())

    assert stat.group == os.getpgid(0)
    assert stat.is_alive()
    assert ProcessStat.read(2**22 + 1) is None
