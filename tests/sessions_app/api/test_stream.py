"""The stream of server-sent events: order, resumption, comments, end of access."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import Any

import pytest

from sessions_app.api import stream as stream_call
from sessions_app.models import Membership

pytestmark = pytest.mark.django_db(transaction=True)

WAIT_S = 20


class Reader:
    """Reads one stream, block by block."""

    def __init__(self, blocks: AsyncIterator[bytes]) -> None:
        self._blocks = blocks
        self.comments = 0

    async def next(self) -> dict[str, str] | None:
        """Return the fields of the next event; None at the end."""
        async with asyncio.timeout(WAIT_S):
            async for block in self._blocks:
                lines = block.decode().rstrip("\n").split("\n")
                if lines[0].startswith(":"):
                    self.comments += 1
                    continue
                return dict(line.split(": ", 1) for line in lines)
        return None

    async def drain(self) -> None:
        """Read to the end."""
        while await self.next():
            pass

    async def messages(self, until: Any) -> list[tuple[str, dict[str, Any]]]:
        """Return ids and messages up to the first that `until` accepts."""
        found = []
        while (event := await self.next()) is not None:
            if "event" in event:
                continue
            message = json.loads(event["data"])
            found.append((event["id"], message))
            if until(message):
                break
        return found


@asynccontextmanager
async def opened(caller, session: str, query: str = "", **headers: str):
    response = await caller("GET", f"sessions/{session}/stream{query}", headers=headers)
    assert response.status_code == 200, response
    async with aclosing(aiter(response)) as blocks:
        yield Reader(blocks)


def is_kind(kind: str):
    return lambda message: message["payload"].get("type") == kind


@pytest.fixture
async def session(admin) -> str:
    return (await admin.session(approval_mode="allow-all"))["id"]


async def test_stream_is_plain_server_sent_events(admin, session) -> None:
    response = await admin("GET", f"sessions/{session}/stream")

    assert response["Content-Type"] == "text/event-stream"
    assert response["Cache-Control"] == "no-store"
    async with aclosing(aiter(response)) as blocks:
        assert await anext(blocks) == b": stream\n\n"


async def test_stream_shows_what_comes_next_with_deltas_that_join(
    admin, session
) -> None:
    async with opened(admin, session) as reader:
        await admin.task(session, "$ printf one; sleep 0.3; printf two")
        found = await reader.messages(is_kind("tool_call_output"))

    payloads = [message["payload"] for _, message in found]
    assert payloads[0].get("text", "").startswith("$ printf one")
    deltas = [
        payload["output"]
        for payload in payloads
        if payload.get("type") == "partial_tool_call_output"
        and payload["event_type"] == "delta"
    ]
    assert "".join(deltas) == payloads[-1]["output"] == "onetwo"


async def test_pieces_of_a_text_join_to_it(admin, session) -> None:
    words = " ".join(f"word{number}" for number in range(12))
    async with opened(admin, session) as reader:
        await admin.task(session, f"say {words}")
        found = await reader.messages(lambda m: m["payload"].get("text") == words)

    payloads = [message["payload"] for _, message in found]
    pieces = [piece for piece in payloads if piece.get("type") == "partial_text"]
    assert "".join(piece.get("text", "") for piece in pieces) == words
    assert pieces[-1]["event_type"] == "stop"


async def test_stream_from_zero_is_the_whole_record(admin, session) -> None:
    await admin.task(session, "say hello")
    await admin.until_status(session, "idle")
    stored = (await admin.get(f"sessions/{session}/events"))["events"]

    async with opened(admin, session, "?after=0") as reader:
        last = stored[-1]["message"]
        found = await reader.messages(lambda message: message == last)

    assert [message for _, message in found] == [e["message"] for e in stored]
    assert [event_id for event_id, _ in found] == [str(e["seq"]) for e in stored]


async def test_stream_resumes_after_the_last_id(admin, session) -> None:
    await admin.task(session, "say hello")
    await admin.until_status(session, "idle")
    stored = (await admin.get(f"sessions/{session}/events"))["events"]

    async with opened(admin, session, "?after=0", **{"Last-Event-ID": "2"}) as reader:
        found = await reader.messages(lambda _: True)

    assert found == [("3", stored[2]["message"])]


async def test_stream_resumes_inside_a_running_output(admin, session) -> None:
    def is_delta(message) -> bool:
        return message["payload"].get("event_type") == "delta"

    async with opened(admin, session) as reader:
        await admin.task(session, "$ echo one; sleep 1; echo two")
        *_, (last_id, first) = await reader.messages(is_delta)
    async with opened(admin, session, **{"Last-Event-ID": last_id}) as reader:
        rest = await reader.messages(is_kind("tool_call_output"))

    text = first["payload"]["output"]
    text += "".join(m["payload"]["output"] for _, m in rest if is_delta(m))
    assert text == rest[-1][1]["payload"]["output"] == "one\ntwo\n"


async def test_state_of_the_task_comes_as_status_events(admin, session) -> None:
    seen = []
    async with opened(admin, session) as reader:
        await admin.task(session, "say hello")
        while "idle" not in seen[1:]:
            event = await reader.next()
            assert event is not None
            if event.get("event") == "status":
                seen.append(json.loads(event["data"])["status"])

    assert "running" in seen


async def test_idle_is_told_after_everything_that_led_to_it(admin, session) -> None:
    told = 0
    async with opened(admin, session, "?after=0") as reader:
        await admin.task(session, "$ true\nthen\nsay done")
        while (event := await reader.next()) is not None:
            if event.get("event") != "status":
                told = int(event["id"].partition(".")[0])
            elif told > 2 and json.loads(event["data"])["status"] == "idle":
                break

    stored = (await admin.get(f"sessions/{session}/events"))["events"]
    assert told == stored[-1]["seq"]


@pytest.mark.parametrize("last_id", ["x", "1.2", "-1", "1.item", "1..5x", "9" * 30])
async def test_id_that_is_not_ours_gets_422(admin, session, error, last_id) -> None:
    response = await admin(
        "GET", f"sessions/{session}/stream", headers={"Last-Event-ID": last_id}
    )

    assert response.status_code == 422
    error(response)


async def test_quiet_stream_sends_comments_and_ends_with_access(
    admin, session, monkeypatch
) -> None:
    monkeypatch.setattr(stream_call, "BEAT_S", 0.05)
    async with opened(admin, session) as reader:
        to_the_end = asyncio.ensure_future(reader.drain())
        while reader.comments < 3:
            await asyncio.sleep(0.02)
        assert not to_the_end.done()

        await Membership.objects.all().adelete()

        await to_the_end


async def test_closed_stream_leaves_no_task_behind(admin, session) -> None:
    before = len(asyncio.all_tasks())

    async with opened(admin, session) as reader:
        await admin.task(session, "say hello")
        await reader.messages(lambda _: True)
    await admin.until_status(session, "idle")

    await asyncio.sleep(0)
    assert len(asyncio.all_tasks()) <= before + 1
