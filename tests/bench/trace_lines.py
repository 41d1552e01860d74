"""Measurements of the record: durable appends per second, events verified per second."""

import asyncio
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.bench.measure import line

ROOT = Path(__file__).parent.parent.parent
ROUNDS = 5
APPENDS = {1: 1500, 16: 300}  # sessions -> appends of each in a round
EVENTS = 50_000
BODY_CHARS = 150  # of text; about 250 bytes of JSON


def lines() -> Iterator[dict[str, Any]]:
    """Yield the lines; the database is a new one, in a process of its own."""
    with tempfile.TemporaryDirectory(prefix="penguin-bench-") as folder:
        environment = {
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "penguin_web.settings",
            "PENGUIN_DATA_DIR": folder,
            "DATABASE_URL": "",
        }
        done = subprocess.run(
            [sys.executable, "-m", "tests.bench.trace_lines"],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
    for row in done.stdout.splitlines():
        name, unit, *samples = row.split()
        sessions = name.rpartition("/")[2] if "/" in name else None
        more = {"sessions": int(sessions)} if sessions else {}
        yield line(name.partition("/")[0], unit, [float(s) for s in samples], **more)


def main() -> None:
    """Print name, unit and samples of each measurement."""
    import django
    from django.core.management import call_command

    django.setup()
    call_command("migrate", verbosity=0)
    for sessions, appends in APPENDS.items():
        samples = asyncio.run(append_rates(sessions, appends))
        print(f"trace_append_per_s/{sessions}", "1/s", *samples)
    print("verify_events_per_s", "1/s", *verify_rates())


async def append_rates(sessions: int, appends: int) -> list[float]:
    """Return durable single appends per second, all sessions together."""
    from asgiref.sync import sync_to_async

    from traces_app.omnimessage import assistant_text
    from traces_app.writer import TraceWriter, create_trace

    message = assistant_text("x" * BODY_CHARS)
    writing = TraceWriter()
    traces = [
        await sync_to_async(create_trace)(f"session-{sessions}-{n}", project="bench")
        for n in range(sessions)
    ]

    async def append(trace_id: int) -> None:
        for _ in range(appends):
            await writing.append(trace_id, message)

    rates = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        await asyncio.gather(*(append(trace.pk) for trace in traces))
        rates.append(sessions * appends / (time.perf_counter() - began))
    await writing.aclose()
    return rates


def verify_rates() -> list[float]:
    """Return events verified per second, for a record of `EVENTS` events."""
    from traces_app.omnimessage import assistant_text
    from traces_app.verify import Verifier
    from traces_app.writer import append, create_trace

    trace = create_trace("session-verify", project="bench")
    messages = [assistant_text("x" * BODY_CHARS) for _ in range(1000)]
    for _ in range(EVENTS // 1000):
        append(trace.pk, messages, checkpoint=True)
    rates = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        report = Verifier().verify(trace.session_id)
        rates.append(report.events / (time.perf_counter() - began))
        assert report.is_intact
    return rates


if __name__ == "__main__":
    main()
