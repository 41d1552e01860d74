"""Compaction by hand: durable, stoppable, also right after a restart."""

from __future__ import annotations

import asyncio

import pytest

from sessions_app import runtime
from sessions_app.models import Session

pytestmark = pytest.mark.django_db(transaction=True)


async def summaries(chat) -> list[str]:
    return [t.text for t in await chat.events("text") if t.synthetic == "summary"]


async def test_the_conversation_becomes_its_summary(make_chat):
    chat = await make_chat()
    await chat.send("say hello")
    await chat.idle()

    await runtime.compact(chat.id)
    assert await chat.status() in ("running", "idle")
    await chat.idle()

    assert [e.status for e in await chat.events("compaction_end")] == ["completed"]
    assert len(await summaries(chat)) == 1
    await chat.send("say on")
    await chat.idle()
    assert [t.text for t in await chat.events("text")][-1] == "on"


async def test_it_works_right_after_a_restart(make_chat):
    chat = await make_chat()
    await chat.send("say hello")
    await chat.idle()
    await runtime.stop_supervisor()
    await runtime.start_supervisor()

    await runtime.compact(chat.id)
    await chat.idle()

    assert len(await summaries(chat)) == 1


async def test_without_a_conversation_it_is_refused(make_chat):
    chat = await make_chat()

    with pytest.raises(runtime.Refusal) as refused:
        await runtime.compact(chat.id)

    assert (refused.value.status, refused.value.code) == (409, "nothing_to_compact")
    assert await chat.status() == "idle"


async def test_while_a_call_waits_it_is_refused(make_chat):
    chat = await make_chat()
    await chat.send("say one")
    await chat.idle()
    await chat.send("$ echo hi")
    await chat.cards()

    with pytest.raises(runtime.Refusal) as refused:
        await runtime.compact(chat.id)

    assert (refused.value.status, refused.value.code) == (409, "busy")
    await runtime.interrupt(chat.id)
    await chat.idle()


async def test_two_at_once_make_one(make_chat):
    chat = await make_chat()
    await chat.send("say hello")
    await chat.idle()

    done = await asyncio.gather(
        *(runtime.compact(chat.id) for _ in range(3)), return_exceptions=True
    )
    await chat.idle()

    assert done.count(None) == 1
    assert len(await chat.events("compaction_begin")) == 1


async def test_a_message_sent_meanwhile_is_worked_off_after_it(make_chat):
    chat = await make_chat()
    await chat.send("say hello")
    await chat.idle()

    await runtime.compact(chat.id)
    await chat.send("say later", queue=True)
    await chat.idle()

    kinds = [p.KIND for p in await chat.events("compaction_end", "text")]
    assert kinds.count("compaction_end") == 1
    assert [t.text for t in await chat.events("text")][-1] == "later"


async def test_an_archived_session_is_not_compacted(make_chat):
    chat = await make_chat()
    await chat.send("say hello")
    await chat.idle()
    await Session.objects.filter(pk=chat.id).aupdate(is_archived=True)

    with pytest.raises(runtime.Refusal, match="archived"):
        await runtime.compact(chat.id)


async def test_an_unknown_session_is_not_found(supervisor):
    with pytest.raises(runtime.Refusal) as refused:
        await runtime.compact("session-none")

    assert refused.value.status == 404
