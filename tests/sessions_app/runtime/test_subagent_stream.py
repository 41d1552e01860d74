"""What those who watch a session are told of its subagents."""

from __future__ import annotations

import asyncio
import contextlib
import json
from typing import Any

import pytest
from asgiref.sync import sync_to_async

from sessions_app import runtime
from sessions_app.models import Session
from sessions_app.runtime.frames import ChildFrame
from tests.sessions_app.runtime.subagents import (
    WAITS,
    card_of_child,
    child_of,
    delegate,
    let_go,
    record_of,
)

pytestmark = pytest.mark.django_db(transaction=True)
PIECES = f"$ printf abc; {WAITS[2:]}\nthen\nsay one two three"


class Reader:
    """Reads a session's stream in the background."""

    def __init__(self, chat) -> None:
        self.chat = chat
        self.events: list[Any] = []
        self._task: asyncio.Task | None = None

    async def start(self, last_id: str | None = None) -> None:
        session = await Session.objects.select_related("trace").aget(pk=self.chat.id)
        stream = await runtime.stream_events(session, last_id)
        self._task = asyncio.create_task(self._read(stream))

    async def _read(self, stream) -> None:
        async with contextlib.aclosing(stream):
            async for event in stream:
                self.events.append(event)

    async def until_idle(self) -> None:
        async def is_told() -> bool:
            states = [json.loads(e.data) for e in self.events if e.event == "status"]
            return bool(states) and states[-1]["status"] == "idle"

        await self.chat.until(is_told)

    async def stop(self) -> None:
        self._task.cancel()
        await asyncio.wait({self._task})

    def messages(self, *, carried: bool) -> list[dict]:
        found = [json.loads(e.data) for e in self.events if not e.event]
        return [m for m in found if ("origin" in m) == carried]


@pytest.fixture
async def make_reader():
    made: list[Reader] = []

    async def make(chat, last_id: str | None = None) -> Reader:
        made.append(Reader(chat))
        await made[-1].start(last_id)
        return made[-1]

    yield make
    for reader in made:
        await reader.stop()


async def test_messages_of_a_subagent_stand_in_the_stream_with_their_origin(
    make_chat, make_reader
):
    chat = await make_chat("allow-all")
    reader = await make_reader(chat)

    await chat.send(delegate(PIECES))
    await let_go(chat)
    await chat.idle()
    await reader.until_idle()

    child = await child_of(chat)
    carried = reader.messages(carried=True)
    assert {tuple(m["origin"]) for m in carried} == {(child.pk,)}
    assert carried[0]["type"] == "session_meta"
    assert carried[0]["payload"]["source"] == "subagent"
    recorded = [m.to_dict() for m in await record_of(child)]
    told = [m for m in carried if not is_partial(m)]
    assert [m["payload"] for m in told] == [m["payload"] for m in recorded]


async def test_joined_deltas_of_a_subagent_equal_its_texts(make_chat, make_reader):
    chat = await make_chat("allow-all")
    reader = await make_reader(chat)

    await chat.send(delegate(PIECES))

    async def is_printed() -> bool:
        return any("abc" in e.data for e in reader.events if "partial" in e.data)

    await chat.until(is_printed)
    await let_go(chat)
    await chat.idle()
    await reader.until_idle()

    pieces = [m["payload"] for m in reader.messages(carried=True) if is_partial(m)]
    texts = "".join(p.get("text", "") for p in pieces)
    outputs = "".join(p.get("output", "") for p in pieces)
    assert (texts, outputs) == ("one two three", "abc")


@pytest.mark.parametrize("last_id", [None, "0"])
async def test_what_a_subagent_did_is_told_before_the_output_it_led_to(
    make_chat, make_reader, last_id
):
    chat = await make_chat("allow-all")
    reader = await make_reader(chat) if last_id is None else None
    await chat.send(delegate("say answer"))
    await chat.idle()

    reader = reader or await make_reader(chat, last_id)
    await reader.until_idle()

    kinds = [
        (m["payload"].get("type"), "origin" in m)
        for m in (json.loads(e.data) for e in reader.events if not e.event)
    ]
    assert kinds.index(("text", True)) < kinds.index(("tool_call_output", False))


async def test_the_record_of_the_parent_stays_as_it_is_in_the_stream(
    make_chat, make_reader
):
    chat = await make_chat("allow-all")
    await chat.send(delegate(PIECES))
    await let_go(chat)
    await chat.idle()

    reader = await make_reader(chat, "0")
    await reader.until_idle()

    own = [
        e for e in reader.events if not e.event and "origin" not in json.loads(e.data)
    ]
    assert [e.id for e in own] == [str(n) for n in range(1, len(own) + 1)]
    carried = reader.messages(carried=True)
    assert carried[0]["type"] == "session_meta"


async def test_a_reader_comes_back_behind_any_message(make_chat, make_reader):
    chat = await make_chat("allow-all")
    await chat.send(delegate(PIECES))
    await let_go(chat)
    await chat.idle()
    whole = await make_reader(chat, "0")
    await whole.until_idle()
    told = [
        e for e in whole.events if not e.event and not is_partial(json.loads(e.data))
    ]
    places = [e for e in told if "origin" in json.loads(e.data)]

    for place in places[:: max(1, len(places) // 5)]:
        again = await make_reader(chat, place.id)
        await again.until_idle()

        after = [m for m in again.messages(carried=True) if not is_partial(m)]
        expected = [json.loads(e.data) for e in places[places.index(place) + 1 :]]
        assert after == expected


async def test_a_waiting_call_is_told_after_the_request_for_it(make_chat, make_reader):
    chat = await make_chat()
    reader = await make_reader(chat)
    card = await card_of_child(chat)

    def calls_told(event) -> list[str]:
        found = json.loads(event.data)["approvals"] if event.event else []
        return [call["session"] for call in found]

    async def is_told() -> bool:
        return any(card.session_id in calls_told(event) for event in reader.events)

    await chat.until(is_told)

    asked = [
        index
        for index, e in enumerate(reader.events)
        if not e.event
        and json.loads(e.data)["payload"].get("type") == "approval_request"
        and json.loads(e.data).get("origin") == [card.session_id]
    ]
    told = [
        index
        for index, event in enumerate(reader.events)
        if card.session_id in calls_told(event)
    ]
    assert asked[0] < told[0]
    assert json.loads(reader.events[told[0]].data)["status"] == "waiting"


async def test_a_page_is_told_which_subagent_is_another_now(make_chat):
    chat = await make_chat("allow-all")
    session = await Session.objects.select_related("trace").aget(pk=chat.id)
    viewer = runtime.viewer(session, have={}, seq=0)
    told: dict[str, int] = {}

    async def watch() -> None:
        async for frame in viewer.frames():
            if isinstance(frame, ChildFrame):
                told[frame.session_id] = told.get(frame.session_id, 0) + 1

    task = asyncio.create_task(watch())
    await chat.send(delegate("$ true\nthen\nsay done"))
    await chat.idle()
    child = await child_of(chat)

    async def is_told() -> bool:
        return told.get(child.pk, 0) > 1

    await chat.until(is_told)
    assert set(told) == {child.pk}
    task.cancel()
    await asyncio.wait({task})


async def test_a_page_that_connects_late_is_told_of_every_subagent(make_chat):
    chat = await make_chat("allow-all")
    await chat.send(f"{delegate('say a')}\n{delegate('say b')}")
    await chat.idle()
    session = await Session.objects.select_related("trace").aget(pk=chat.id)
    head = await sync_to_async(lambda: runtime.snapshot(chat.id).seq)()
    viewer = runtime.viewer(session, have={}, seq=head)
    told = set()

    async with contextlib.aclosing(viewer.frames()) as frames, asyncio.timeout(10):
        async for frame in frames:
            if isinstance(frame, ChildFrame):
                told.add(frame.session_id)
            if len(told) == 2:
                break

    rows = Session.objects.filter(parent_id=chat.id)
    assert told == {row.pk async for row in rows}


def is_partial(message: dict) -> bool:
    return message["payload"].get("type", "").startswith("partial_")
