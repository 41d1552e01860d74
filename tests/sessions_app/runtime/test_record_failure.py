"""No call runs without its record; when the record fails, people are told why."""

from __future__ import annotations

import contextlib

import pytest
from asgiref.sync import sync_to_async
from django.db import connection

from sessions_app import runtime
from sessions_app.runtime import live_session
from traces_app import verify

pytestmark = pytest.mark.django_db(transaction=True)


@contextlib.asynccontextmanager
async def refused(kind: str):
    """Let the database refuse events of a kind, or checkpoints, as a full disk does."""
    table, condition = "traceevent", f"WHEN NEW.kind = '{kind}'"
    if kind == "checkpoint":
        table, condition = kind, ""
    function = f"""
        CREATE TRIGGER full_disk BEFORE INSERT ON traces_app_{table} {condition}
        BEGIN SELECT RAISE(ABORT, 'database or disk is full'); END
    """

    def run(sql: str) -> None:
        with connection.cursor() as cursor:
            cursor.execute(sql)

    await sync_to_async(run)(function)
    try:
        yield
    finally:
        await sync_to_async(run)("DROP TRIGGER full_disk")


@pytest.mark.parametrize("kind", ["approval_decision", "tool_started"])
async def test_a_call_whose_record_fails_is_not_started_and_the_page_says_why(
    make_chat, tmp_path, kind
):
    chat = await make_chat("allow-all")

    async with refused(kind):
        await chat.send(f"$ touch {tmp_path}/ran")
        await chat.idle()

    assert not (tmp_path / "ran").exists()
    assert "could not be written" in runtime.trouble(chat.id)
    assert await chat.events("tool_started") == []


@pytest.mark.parametrize(
    "kind", ["request_begin", "tool_call", "tool_call_output", "request_end", "text"]
)
async def test_after_the_disk_has_room_again_the_session_goes_on_whole(make_chat, kind):
    chat = await make_chat("allow-all")
    async with refused(kind):
        await chat.send("$ echo hi\nsay there")

        async def told():
            return runtime.trouble(chat.id)

        await chat.until(told)
        await chat.idle()

    await chat.send("say on")
    await chat.idle()

    assert runtime.trouble(chat.id) == ""
    assert [p.text for p in await chat.events("text")][-1] == "on"
    verdict = await sync_to_async(verify.verify_trace)(chat.id)
    assert verdict.is_intact and verdict.is_complete, verdict


async def test_a_request_that_cannot_be_recorded_asks_nobody(make_chat):
    chat = await make_chat()

    async with refused("approval_request"):
        await chat.send("$ echo hi")
        await chat.idle()

    assert await sync_to_async(runtime.pending_requests)(chat.id) == []
    await chat.send("say on")
    await chat.cards()


async def test_the_end_of_a_task_is_written_as_soon_as_there_is_room(
    make_chat, monkeypatch, caplog
):
    monkeypatch.setattr(live_session, "END_WAITS_S", (0.0, 0.01))
    chat = await make_chat("allow-all")

    async with refused("checkpoint"):
        await chat.send("say hi")

        async def has_failed_often():
            return caplog.text.count("End of task") > 5

        await chat.until(has_failed_often)
        assert await chat.status() == "running"

    await chat.idle()
