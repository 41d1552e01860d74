"""Messages, queue, stop, and what a session says while and after it works."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest
from asgiref.sync import sync_to_async

from sessions_app import runtime
from sessions_app.models import CommandSession, QueuedMessage, Session
from sessions_app.runtime import supervisor as supervisors
from traces_app import verify

pytestmark = pytest.mark.django_db(transaction=True)


async def test_a_session_reads_idle_only_when_everything_is_on_record(make_chat):
    chat = await make_chat("allow-all")

    await chat.send("$ echo hi\nthen\nsay done")
    assert await chat.status() == "running"
    await chat.idle()

    texts = [p.text for p in await chat.events("text") if p.role == "assistant"]
    assert await chat.outputs() == ["hi\n"] and texts[-1] == "done"
    verdict = await sync_to_async(verify.verify_trace)(chat.id)
    assert verdict.is_intact and verdict.is_complete


async def test_the_title_is_the_first_line_of_the_first_message(make_chat):
    chat = await make_chat("allow-all")

    await chat.send("say hi " + "x" * 100 + "\nsay more")
    await chat.idle()
    await chat.send("say again")
    await chat.idle()

    assert (await chat.row()).title == ("say hi " + "x" * 100)[:60]


async def test_a_message_while_a_task_runs_is_refused_unless_it_is_queued(make_chat):
    chat = await make_chat("allow-all")
    await chat.send("$ sleep 1")

    with pytest.raises(runtime.Refusal) as caught:
        await chat.send("say more")
    assert (caught.value.status, caught.value.code) == (409, "busy")

    await chat.send("say queued", queue=True)
    await chat.idle()

    assert [p.text for p in await chat.events("text") if p.role == "user"] == [
        "$ sleep 1",
        "say queued",
    ]
    assert not await QueuedMessage.objects.aexists()


async def test_of_messages_sent_at_once_one_starts_a_task_and_none_waits_for_it(
    make_chat,
):
    chat = await make_chat()

    async with asyncio.timeout(10):
        sent = await asyncio.gather(
            *(chat.send(f"$ echo {number}") for number in range(4)),
            return_exceptions=True,
        )

    assert [getattr(e, "code", "") for e in sent if e] == ["busy"] * 3
    (card,) = await chat.cards()
    await chat.decide(card, "deny")
    await chat.idle()
    assert [p.role for p in await chat.events("text")].count("user") == 1


async def test_a_message_and_putting_away_at_once_leave_a_usable_session(make_chat):
    chat = await make_chat()

    await asyncio.gather(
        chat.send("$ echo hi"),
        runtime.archive(chat.id, True, user=chat.user),
        return_exceptions=True,
    )

    row = await chat.row()
    assert row.is_archived == (row.status == "idle")
    if not row.is_archived:
        (card,) = await chat.cards()
        await chat.decide(card, "deny")
    await chat.idle()


async def test_a_waiting_session_is_busy_too(make_chat):
    chat = await make_chat()
    await chat.send("$ echo hi")
    (card,) = await chat.cards()

    with pytest.raises(runtime.Refusal) as caught:
        await chat.send("say more")

    assert caught.value.code == "busy"
    await chat.decide(card, "deny")
    await chat.idle()


async def test_a_queued_message_can_be_recalled_until_it_is_delivered(make_chat):
    chat = await make_chat("allow-all")
    await chat.send("$ sleep 1")
    await chat.until(lambda: chat.events("tool_started"))
    await chat.send("say secret", queue=True)
    row = await QueuedMessage.objects.aget(text="say secret")

    assert await runtime.recall_queued(chat.id, row.pk) == "say secret"
    with pytest.raises(runtime.Refusal) as caught:
        await runtime.recall_queued(chat.id, row.pk)

    assert caught.value.code == "delivered"
    await chat.idle()
    assert "say secret" not in str(await chat.events("text"))


async def test_stop_puts_queued_messages_back_into_the_draft(make_chat):
    chat = await make_chat("allow-all")
    await chat.send("$ sleep 30")
    await chat.until(lambda: chat.events("tool_started"))
    await chat.send("say later", queue=True)

    await runtime.interrupt(chat.id, user=chat.user)
    await chat.idle()

    assert (await chat.row()).draft == "say later"
    assert not await QueuedMessage.objects.aexists()


async def test_stop_ends_the_command_and_the_next_message_goes_on(make_chat):
    chat = await make_chat("allow-all")
    await chat.send("$ echo begin; sleep 60")

    async def has_begun():
        return await CommandSession.objects.filter(state="running").aexists()

    await chat.until(has_begun)
    await runtime.interrupt(chat.id, user=chat.user)
    await chat.idle()
    await chat.send("say on")
    await chat.idle()

    (output,) = await chat.events("tool_call_output")
    assert output.stop_reason == "aborted"
    process = await CommandSession.objects.aget()
    assert not Path(f"/proc/{process.pid}").exists()
    assert [p.text for p in await chat.events("text")][-1] == "on"


async def test_stop_on_an_idle_session_does_nothing(make_chat):
    chat = await make_chat()
    before = await chat.events()

    await runtime.interrupt(chat.id, user=chat.user)

    assert await chat.events() == before


@pytest.mark.parametrize("text", ["", "   \n ", "x" * (1024 * 1024 + 1)])
async def test_empty_and_huge_messages_are_refused_with_a_sentence(make_chat, text):
    chat = await make_chat()

    with pytest.raises(runtime.Refusal) as caught:
        await chat.send(text)

    assert caught.value.status == 422 and caught.value.details == {"field": "text"}
    assert await chat.status() == "idle"


async def test_a_missing_workspace_is_named_and_nothing_is_lost(make_chat):
    chat = await make_chat()
    shutil.rmtree((await chat.row()).workspace)
    await supervisors.current().drop(chat.id)

    with pytest.raises(runtime.Refusal) as caught:
        await chat.send("say hi")

    assert caught.value.code == "workspace_missing"
    assert (await chat.row()).workspace in caught.value.message
    assert await chat.status() == "idle"


async def test_a_workspace_outside_the_allowed_folders_is_refused(make_chat):
    for workspace in ("/etc", "/", "../../..", "/nowhere/at/all"):
        with pytest.raises(runtime.Refusal) as caught:
            await make_chat(workspace=workspace)
        assert caught.value.details == {"field": "workspace"}


async def test_a_model_without_a_key_fails_with_what_to_set(make_chat, project):
    from sessions_app.runtime import configs

    text, number = await sync_to_async(configs.document_text)(project)
    text = text.replace(
        "models:", "models:\n  - {provider: openai, model_id: gpt-x, vision: false}", 1
    )
    await sync_to_async(configs.save)(project, text, base_version=number)
    chat = await make_chat(model="openai/gpt-x")

    await chat.send("hello")
    await chat.idle()

    ends = await chat.events("request_end")
    assert [e.status for e in ends] == ["auth"]
    assert "OPENAI_API_KEY" in ends[0].error_message


async def test_a_command_in_the_background_outlives_its_task_and_is_told_of(make_chat):
    chat = await make_chat("allow-all")
    await chat.send(
        'call exec_command {"cmd": "sleep 1; exit 3", "yield_time_ms": 250}'
    )
    await chat.idle()
    (process,) = await runtime.processes(chat.id)
    assert process["running"]

    async def has_ended():
        return await CommandSession.objects.filter(state="exited").aexists()

    await chat.until(has_ended)
    for text in ("say next", "say once more"):
        await chat.send(text)
        await chat.idle()

    told = [p.text for p in await chat.events("text") if p.synthetic == "processes"]
    assert len(told) == 1
    assert f"{process['process_id']}: exit code 3" in told[0]
    assert told[0].startswith("[block of the system, not written by the user]")


async def test_deleting_a_session_ends_its_commands_and_keeps_the_record(make_chat):
    chat = await make_chat("allow-all")
    await chat.send('call exec_command {"cmd": "sleep 60", "yield_time_ms": 250}')
    await chat.idle()
    (process,) = await runtime.processes(chat.id)

    await runtime.delete_session(chat.id, user=chat.user)

    assert not Path(f"/proc/{process['pid']}").exists()
    assert len(await chat.events()) > 5
    with pytest.raises(runtime.Refusal):
        await chat.send("say hi")


async def test_an_archived_session_takes_no_message(make_chat):
    chat = await make_chat()
    await runtime.archive(chat.id, True, user=chat.user)

    with pytest.raises(runtime.Refusal) as caught:
        await chat.send("say hi")

    assert caught.value.code == "archived"
    await runtime.archive(chat.id, False, user=chat.user)
    await chat.send("say hi")
    await chat.idle()


async def test_many_sessions_work_at_once(make_chat):
    chats = [await make_chat("allow-all") for _ in range(8)]

    await asyncio.gather(*(chat.send("$ echo hi") for chat in chats))
    await asyncio.gather(*(chat.idle() for chat in chats))

    assert [await chat.outputs() for chat in chats] == [["hi\n"]] * 8
    assert await Session.objects.filter(status="idle").acount() == 8


async def test_a_message_right_after_the_session_reads_idle_is_taken(make_chat):
    chat = await make_chat("allow-all")

    for number in range(25):
        await chat.send(f"say {number}")
        while await chat.status() != "idle":
            await asyncio.sleep(0)

    texts = [p.text for p in await chat.events("text") if p.role == "assistant"]
    assert texts == [str(number) for number in range(25)]


async def test_each_message_is_recorded_with_who_wrote_it(make_chat, make_member):
    chat = await make_chat("allow-all")
    other = await sync_to_async(make_member)("olga", "operator")

    await chat.send("say one")
    await chat.idle()
    await runtime.start_task(chat.id, text="say two", user=other)
    await chat.idle()

    texts = await chat.events("text")
    assert [t.author for t in texts if t.role == "user"] == ["paula", "olga"]
    assert {t.author for t in texts if t.role == "assistant"} == {None}
