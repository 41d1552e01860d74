"""Measurements of a served installation: start, memory, latencies, pages."""

import asyncio
import re
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx

from tests import site as sites
from tests.bench import clock, dom
from tests.bench.measure import line
from tests.bench.visitor import Visitor
from tests.site import Site

ROUNDS = 20
CARD_S = 0.3
STARTS = 5
TURNS = 200


def lines() -> Iterator[dict[str, Any]]:
    """Yield the lines; every server runs in a temporary folder and is stopped."""
    with tempfile.TemporaryDirectory(prefix="penguin-bench-") as folder:
        installed = sites.install(Path(folder) / "installed")
        yield from _starts(installed, Path(folder))
        site = sites.copy(installed, Path(folder) / "served")
        site.start()
        try:
            yield from asyncio.run(_all(_served(site)))
            yield from dom.lines(site)
        except BaseException:
            print(site.log.read_text()[-4000:], file=sys.stderr)
            raise
        finally:
            site.remove()


async def _all(found: AsyncIterator[dict[str, Any]]) -> list[dict[str, Any]]:
    return [one async for one in found]


def _starts(installed: Site, folder: Path) -> Iterator[dict[str, Any]]:
    seconds, resident = [], []
    for number in range(STARTS):
        site = sites.copy(installed, folder / f"start-{number}")
        began = time.monotonic()
        site.start()
        assert httpx.get(f"{site.base_url}/healthz", trust_env=False).status_code == 200
        seconds.append(time.monotonic() - began)
        time.sleep(1)
        resident.append(_resident_mib(site))
        site.remove()
    yield line("cold_start_s", "s", seconds)
    yield line("idle_rss_mib", "MiB", resident)


def _resident_mib(site: Site) -> float:
    assert site.process
    status = Path(f"/proc/{site.process.pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+) kB", status)[1]) / 1024


async def _served(site: Site) -> AsyncIterator[dict[str, Any]]:
    async with Visitor(site) as visitor:
        yield await _approve_to_first_output(visitor)
        yield await _tool_end(visitor)
        for count in clock.SESSIONS:
            yield await _delta_latency(visitor, count)
        yield await _chat_open(visitor)
        yield await _login_page(visitor)


async def _approve_to_first_output(visitor: Visitor) -> dict[str, Any]:
    """From the click to the first character on the page's socket."""
    samples = []
    for number in range(ROUNDS):
        session_id = await visitor.session("always-ask")
        word = f"first-{number}-word"
        # The card shows the command: only the output holds the word in one piece.
        command = f"$ echo first-''{number}-''word"
        async with visitor.socket(session_id) as socket:
            frames = socket.frames()
            await visitor.send(session_id, command)
            call = await visitor.pending(session_id)
            # A card takes no press in its first moments.
            await asyncio.sleep(CARD_S)
            began = time.time()
            decided = asyncio.create_task(
                visitor.api.post(
                    f"sessions/{session_id}/approvals/{call['tool_call_id']}",
                    json={"decision": "allow"},
                )
            )
            async with asyncio.timeout(30):
                async for at, text in frames:
                    if word in text:
                        samples.append((at - began) * 1000)
                        break
            assert (await decided).status_code == 200
        await visitor.until_idle(session_id)
    return line("approve_to_first_output_ms", "ms", samples)


async def _tool_end(visitor: Visitor) -> dict[str, Any]:
    """From the command's last word to its complete output on the stream."""
    samples = []
    session_id = await visitor.session()
    for _ in range(ROUNDS):
        async with visitor.stream(session_id) as stream:
            await visitor.send(session_id, "$ echo $EPOCHREALTIME")
            async with asyncio.timeout(30):
                async for text in stream.aiter_lines():
                    now = time.time()
                    if '"tool_call_output"' in text and (
                        found := clock.STAMP.search(text)
                    ):
                        samples.append((now - float(found[0])) * 1000)
                        break
        await visitor.until_idle(session_id)
    return line("tool_end_ms", "ms", samples)


async def _delta_latency(visitor: Visitor, count: int) -> dict[str, Any]:
    """From a write in the command to the socket, with `count` sessions at once."""
    session_ids = [await visitor.session() for _ in range(count)]
    watched = await asyncio.gather(
        *(_watch_clock(visitor, session_id, count) for session_id in session_ids)
    )
    samples = [sample for one in watched for sample in one]
    return line("delta_latency_ms", "ms", samples, at="socket", sessions=count)


async def _watch_clock(visitor: Visitor, session_id: str, count: int) -> list[float]:
    samples: list[float] = []
    async with visitor.socket(session_id) as socket:
        await visitor.send(session_id, f"$ {clock.command(count)}")
        async with asyncio.timeout(60):
            async for at, text in socket.frames():
                if text.startswith("{") and '"delta"' in text:
                    stamps = clock.STAMP.findall(text)
                    samples += [(at - float(stamp)) * 1000 for stamp in stamps]
                if len(samples) >= clock.ENOUGH:
                    break
    await visitor.until_idle(session_id)
    return samples


async def _chat_open(visitor: Visitor) -> dict[str, Any]:
    """The page of a session whose one task took 200 turns with a call each."""
    session_id = await visitor.session()
    await visitor.send(session_id, "\nthen\n".join(["$ echo turn"] * TURNS))
    await visitor.until_idle(session_id, seconds=300)
    samples = []
    for _ in range(ROUNDS):
        began = time.monotonic()
        page = await visitor.pages.get(f"/p/default/s/{session_id}/")
        samples.append((time.monotonic() - began) * 1000)
        assert page.status_code == 200
    return line("chat_open_ms", "ms", samples, turns=TURNS, bytes=len(page.content))


async def _login_page(visitor: Visitor) -> dict[str, Any]:
    """What a first visit transfers: the page and every file it names."""
    async with httpx.AsyncClient(
        base_url=visitor.site.base_url, trust_env=False
    ) as stranger:
        page = await stranger.get("/login/")
        total = page.num_bytes_downloaded
        for link in set(re.findall(r'(?:href|src)="(/static/[^"]+)"', page.text)):
            total += (await stranger.get(link)).num_bytes_downloaded
    return line("login_page_bytes", "bytes", [total])
