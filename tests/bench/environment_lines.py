"""Measures the Environment against the bare shell, in one run and under one load."""

from __future__ import annotations

import asyncio
import json
import os
import re
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sessions_app.environment import Environment, default_tool_definitions
from tests.bench.measure import line
from traces_app.omnimessage import tool_call

SPAWNS = 200
FLOODS = 5
PIPES = {
    "tr": r"head -c 1G /dev/zero | tr '\0' x",
    "yes": "yes | head -c 1G",
}


def lines() -> Iterator[dict[str, Any]]:
    """Yield the lines of this part."""
    yield from asyncio.run(_measured())


async def _measured() -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder:
        # A login shell reads the profile: with a clean HOME it costs nothing.
        env = {"HOME": folder, "PATH": os.environ["PATH"]}
        environment = Environment(folder, default_tool_definitions(), env=env)
        try:
            return [
                await spawn_overhead(environment, env),
                *await pipe_lines(environment, env),
            ]
        finally:
            await environment.aclose()


async def ours(environment: Environment, cmd: str) -> float:
    """Return the seconds that `cmd` takes through exec_command."""
    arguments = json.dumps({"cmd": cmd, "yield_time_ms": 110_000})
    began = time.perf_counter()
    async for message in environment.execute_tool(
        tool_call("exec_command", arguments, "call_0")
    ):
        last = message
    took = time.perf_counter() - began
    assert last.payload.details["exit_code"] == 0
    return took


def bare(cmd: str, env: dict[str, str]) -> float:
    """Return the seconds that `cmd` takes in a login shell of its own."""
    began = time.perf_counter()
    subprocess.run(["bash", "-lc", cmd], env=env, check=True, stdin=subprocess.PIPE)
    return time.perf_counter() - began


async def spawn_overhead(
    environment: Environment, env: dict[str, str]
) -> dict[str, Any]:
    """Compare `true` through the Environment with a bare login shell."""
    through, alone = [], []
    for _ in range(SPAWNS):
        alone.append(bare("true", env))
        through.append(await ours(environment, "true"))
        await asyncio.sleep(0.005)  # the end of one call is not part of the next
    usual = statistics.median(alone)
    ratios = [seconds / usual for seconds in through]
    return line("spawn_overhead", "ratio", ratios, versus="bash -lc true")


async def pipe_lines(
    environment: Environment, env: dict[str, str]
) -> list[dict[str, Any]]:
    """Send 1 GiB through exec_command and through `cat`; watch the memory."""
    found = []
    grown = []
    for name, cmd in PIPES.items():
        reference = f"{cmd} | cat >/dev/null"
        ratios = []
        for _ in range(FLOODS):
            alone = bare(reference, env)
            before = reset_peak_mib()
            ratios.append(alone / await ours(environment, cmd))
            grown.append(max(peak_mib() - before, 0))
        found.append(
            line("pipe_throughput", "ratio", ratios, versus=reference, case=name)
        )
    return [*found, line("pipe_rss", "MiB", grown)]


def reset_peak_mib() -> float:
    """Forget the highest memory use so far; return the present one."""
    Path("/proc/self/clear_refs").write_text("5")
    return peak_mib()


def peak_mib() -> float:
    """Return the highest memory use since the last reset."""
    status = Path("/proc/self/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+) kB", status).group(1)) / 1024
