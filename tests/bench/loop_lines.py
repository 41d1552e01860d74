"""Measurements of the agent loop: coming back to a long session, calls side by side."""

import asyncio
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from tests import site as sites
from tests.bench.measure import line
from tests.bench.visitor import Visitor
from tests.site import Site

EVENTS = 2000
TURNS = 290  # of one call each: seven events
RESTARTS = 5
ROUNDS = 20
CALLS = 8


def lines() -> Iterator[dict[str, Any]]:
    """Yield the lines; the server runs in a temporary folder and is stopped."""
    with tempfile.TemporaryDirectory(prefix="penguin-bench-") as folder:
        site = sites.install(Path(folder) / "site")
        site.start()
        try:
            yield asyncio.run(_parallel_calls(site))
            yield from _resume(site)
        except BaseException:
            print(site.log.read_text()[-4000:], file=sys.stderr)
            raise
        finally:
            site.remove()


async def _parallel_calls(site: Site) -> dict[str, Any]:
    """A turn with calls side by side, against a turn with one of them."""
    async with Visitor(site) as visitor:
        session_id = await visitor.session()
        alone, together = [], []
        for _ in range(ROUNDS):
            alone.append(await _turn_s(visitor, session_id, 1))
            together.append(await _turn_s(visitor, session_id, CALLS))
    usual = statistics.median(alone)
    ratios = [seconds / usual for seconds in together]
    return line("parallel_calls_ratio", "ratio", ratios, versus="one call", calls=CALLS)


async def _turn_s(visitor: Visitor, session_id: str, calls: int) -> float:
    """Return the seconds from one request to the next, by the record's clock."""
    text = "\n".join(["$ true"] * calls)
    await visitor.send(session_id, f"{text}\nthen\nsay ok")
    await visitor.until_idle(session_id)
    begins = await _events(visitor, session_id, "request_begin")
    first, second = (
        datetime.fromisoformat(event["message"]["timestamp"]) for event in begins[-2:]
    )
    return (second - first).total_seconds()


def _resume(site: Site) -> Iterator[dict[str, Any]]:
    """From a message to its answer under way, first thing after a restart."""
    session_id, events = asyncio.run(_long_session(site))
    assert events >= EVENTS
    samples = []
    for _ in range(RESTARTS):
        site.restart()
        samples.append(asyncio.run(_first_message_ms(site, session_id)))
    yield line("resume_ms", "ms", samples, events=events)


async def _long_session(site: Site) -> tuple[str, int]:
    async with Visitor(site) as visitor:
        session_id = await visitor.session()
        await visitor.send(session_id, "\nthen\n".join(["$ true"] * TURNS))
        await visitor.until_idle(session_id, seconds=300)
        events = await _events(visitor, session_id)
        return session_id, events[-1]["seq"]


async def _first_message_ms(site: Site, session_id: str) -> float:
    async with Visitor(site) as visitor:
        began = time.perf_counter()
        await visitor.send(session_id, "say on")
        took = time.perf_counter() - began
        await visitor.until_idle(session_id)
    return took * 1000


async def _events(
    visitor: Visitor, session_id: str, kind: str = ""
) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    after = 0
    while after is not None:
        answer = await visitor.api.get(
            f"sessions/{session_id}/events",
            params={"after": after, "limit": 1000, "type": kind},
        )
        page = answer.json()
        found += page["events"]
        after = page["next"]
    return found
