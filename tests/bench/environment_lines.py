"""Measures the Environment against the bare shell, in one run and under one load."""

from __future__ import annotations

import asyncio
import json
import os
import resource
import statistics
import subprocess
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

from sessions_app.environment import Environment, default_tool_definitions
from traces_app.omnimessage import tool_call

Line = dict[str, object]
GIB = 1024 * 1024 * 1024
PIPES = {
    "tr": r"head -c 1G /dev/zero | tr '\0' x",
    "yes": "yes | head -c 1G",
}


def lines() -> Iterator[Line]:
    """Yield the lines of this part."""
    yield from asyncio.run(_measured())


async def _measured() -> list[Line]:
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


async def run(environment: Environment, cmd: str) -> str:
    """Run `cmd` through exec_command; return the stop reason."""
    arguments = json.dumps({"cmd": cmd, "yield_time_ms": 110_000})
    call = tool_call("exec_command", arguments, "call_0")
    async for message in environment.execute_tool(call):
        last = message
    return str(last.payload.stop_reason)


def bare(cmd: str, env: dict[str, str]) -> None:
    """Run `cmd` in a login shell, its output thrown away by itself."""
    subprocess.run(["bash", "-lc", cmd], env=env, check=True, stdin=subprocess.PIPE)


async def timed(work: Callable[[], Awaitable[object]]) -> float:
    began = time.perf_counter()
    await work()
    return time.perf_counter() - began


async def spawn_overhead(environment: Environment, env: dict[str, str]) -> Line:
    """Compare `true` through the Environment with a bare `bash -lc true`."""
    ours, theirs = [], []
    for _ in range(100):
        began = time.perf_counter()
        bare("true", env)
        theirs.append(time.perf_counter() - began)
        ours.append(await timed(lambda: run(environment, "true")))
        await asyncio.sleep(0.005)  # what follows a call is not part of the next
    ratios = [one / statistics.median(theirs) for one in ours[5:]]
    return summary("spawn_overhead", "ratio", ratios, versus="bare bash -lc true")


async def pipe_lines(environment: Environment, env: dict[str, str]) -> list[Line]:
    """Send 1 GiB through exec_command, and through `cat`; watch the memory."""
    result: list[Line] = []
    before = rss_mib()
    peak = before
    for name, cmd in PIPES.items():
        ratios = []
        for _ in range(5):
            began = time.perf_counter()
            bare(f"{cmd} | cat >/dev/null", env)
            theirs = time.perf_counter() - began
            ratios.append(theirs / await timed(lambda: run(environment, cmd)))
            peak = max(peak, peak_rss_mib())
        line = summary("pipe_throughput", "ratio", ratios, versus="cat >/dev/null")
        result.append({**line, "case": name})
    return [*result, summary("pipe_rss", "MiB", [peak - before])]


def rss_mib() -> float:
    """Return the memory in use now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / (1024 * 1024)


def peak_rss_mib() -> float:
    """Return the most memory that was ever in use."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def summary(name: str, unit: str, values: list[float], versus: str = "") -> Line:
    """Return one line: the median counts."""
    ordered = sorted(values)
    median = statistics.median(ordered)
    line: Line = {
        "name": name,
        "value": round(median, 3),
        "unit": unit,
        "n": len(ordered),
        "median": round(median, 3),
        "p95": round(ordered[min(len(ordered) - 1, int(len(ordered) * 0.95))], 3),
        "min": round(ordered[0], 3),
        "max": round(ordered[-1], 3),
    }
    return {**line, "versus": versus} if versus else line


if __name__ == "__main__":
    for line in lines():
        print(json.dumps(line))
