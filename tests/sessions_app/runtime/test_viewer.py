"""Watchers end with identical text, however often they drop and however slow they are."""

from __future__ import annotations

import asyncio
import contextlib
import random

import pytest
from asgiref.sync import sync_to_async

from sessions_app import runtime
from sessions_app.models import Session
from sessions_app.runtime.frames import (
    BindFrame,
    EventFrame,
    ItemFrame,
    ResetFrame,
)
from sessions_app.runtime.viewer import WINDOW

pytestmark = pytest.mark.django_db(transaction=True)

LINES = (
    'for i in $(seq 400); do echo "line $i"; [ $((i % 40)) = 0 ] && sleep 0.05; done'
)


class Page:
    """What a browser keeps: text per item, the last event, the calls' bindings."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.texts: dict[str, str] = {}
        self.seq = 0
        self.seen: list[int] = []
        self.bound: dict[str, tuple[str, int]] = {}
        self.acks = True

    async def watch(self, frames: int | None = None) -> None:
        """Take frames from one connection, then drop it."""
        have = {item: len(text) for item, text in self.texts.items()}
        viewer = runtime.viewer(self.session, have=have, seq=self.seq)
        received = 0
        async with contextlib.aclosing(viewer.frames()) as stream:
            async for frame in stream:
                match frame:
                    case runtime.Span():
                        known = self.texts.get(frame.item, "")
                        assert frame.start == len(known), "a gap or a repeat"
                        self.texts[frame.item] = known + frame.text
                        received += len(frame.text)
                        if self.acks:
                            viewer.ack(received)
                    case EventFrame():
                        self.seq = frame.event.seq
                        self.seen.append(frame.event.seq)
                        self._complete(frame.event.message.payload)
                    case BindFrame():
                        self.bound[frame.call_id] = (frame.item, frame.start)
                        self.texts.setdefault(frame.item, "")
                    case ItemFrame():
                        self.texts[frame.item] = ""
                    case ResetFrame():
                        self.texts[frame.item] = self.texts[frame.item][: frame.start]
                if frames is not None:
                    frames -= 1
                    if frames <= 0:
                        return

    def _complete(self, payload) -> None:
        """Let a complete output supersede what was streamed of it."""
        if payload.KIND == "tool_call_output" and not payload.details["truncated"]:
            span = payload.details["log"]
            self.texts[span["item"]] = payload.output


async def _finish(chat, pages):
    await chat.idle()

    async def caught_up():
        head = (await sync_to_async(runtime.snapshot)(chat.id)).seq
        return all(page.seq == head for page in pages)

    await chat.until(caught_up)


async def test_watchers_that_drop_at_random_end_with_identical_text(make_chat):
    chat = await make_chat("allow-all")
    rng = random.Random(7)
    pages = [Page(await chat.row()) for _ in range(3)]
    is_over = asyncio.Event()

    async def drop_and_return(page):
        while not is_over.is_set():
            async with contextlib.AsyncExitStack():
                await page.watch(frames=rng.randint(1, 12))
            await asyncio.sleep(rng.random() * 0.02)

    steady = Page(await chat.row())
    tasks = [asyncio.create_task(drop_and_return(page)) for page in pages]
    tasks.append(asyncio.create_task(steady.watch()))
    await chat.send(f"$ {LINES}\nsay {' '.join(str(n) for n in range(200))}")
    await _finish(chat, [*pages, steady])
    is_over.set()
    for task in tasks:
        task.cancel()
    done = await asyncio.gather(*tasks, return_exceptions=True)

    assert not [d for d in done if isinstance(d, AssertionError)]
    expected = "".join(f"line {n}\n" for n in range(1, 401))
    for page in [*pages, steady]:
        assert page.seen == list(range(1, page.seq + 1)), "each event once, in order"
        shown = [t for i, t in page.texts.items() if i.startswith("proc-")]
        assert shown == [expected]


async def test_a_reader_that_never_reads_holds_up_nobody(make_chat):
    chat = await make_chat("allow-all")
    slow, quick = Page(await chat.row()), Page(await chat.row())
    slow.acks = False
    tasks = [asyncio.create_task(page.watch()) for page in (slow, quick)]

    await chat.send("$ head -c 2000000 /dev/zero | tr '\\0' x; echo; echo end")
    await _finish(chat, [quick])

    async def has_all():
        return sum(map(len, quick.texts.values())) >= 2_000_001

    await chat.until(has_all)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)

    (text,) = [t for i, t in quick.texts.items() if i.startswith("proc-")]
    assert text.endswith("x\nend\n")
    assert sum(map(len, slow.texts.values())) <= WINDOW + 64 * 1024


async def test_a_page_opened_in_the_middle_gets_the_rest(make_chat):
    chat = await make_chat("allow-all")
    await chat.send(f"$ {LINES}; sleep 0.5")

    async def streams():
        found = await sync_to_async(runtime.snapshot)(chat.id)
        return found.bindings

    await chat.until(streams)
    page = Page(await chat.row())
    task = asyncio.create_task(page.watch())
    await _finish(chat, [page])
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)

    (text,) = [t for i, t in page.texts.items() if i.startswith("proc-")]
    assert text == "".join(f"line {n}\n" for n in range(1, 401))
