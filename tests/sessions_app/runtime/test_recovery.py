"""A process that dies leaves nothing running, nothing undecided for ever, no gap."""

from __future__ import annotations

import asyncio
import shutil

import pytest
from asgiref.sync import sync_to_async

from sessions_app import runtime
from sessions_app.models import ApprovalRequest, CommandSession, Owner, Session
from sessions_app.runtime import decisions, recovery
from sessions_app.runtime import supervisor as supervisors
from traces_app import verify

pytestmark = pytest.mark.django_db(transaction=True)


async def restart():
    """Stop the supervisor like a SIGTERM does, and start a new one."""
    await runtime.stop_supervisor()
    await runtime.start_supervisor()


async def whole(chat) -> bool:
    verdict = await sync_to_async(verify.verify_trace)(chat.id)
    return verdict.is_intact and verdict.is_complete


async def test_a_pending_card_outlives_the_server_and_its_decision_goes_on(make_chat):
    chat = await make_chat()
    await chat.send("$ echo hi\nthen\nsay end")
    (card,) = await chat.cards()

    await restart()

    assert await chat.status() == "waiting"
    (again,) = await chat.cards()
    assert again.pk == card.pk
    await chat.decide(again, "allow", arguments_sha256=card.arguments_sha256)
    await chat.idle()
    assert await chat.outputs() == ["hi\n"]
    assert [p.text for p in await chat.events("text")][-1] == "end"
    assert await whole(chat)


async def test_a_running_call_is_closed_and_its_process_ended(make_chat):
    chat = await make_chat("allow-all")
    await chat.send("$ echo begin; sleep 60")

    async def runs():
        return await CommandSession.objects.filter(state="running").aexists()

    await chat.until(runs)
    await restart()

    assert await chat.status() == "idle"
    (output,) = await chat.events("tool_call_output")
    assert output.stop_reason == "aborted" and "unknown" in output.output
    assert (await CommandSession.objects.aget()).state in ("lost", "exited")
    assert [r.what for r in await chat.events("recovered")]
    assert await whole(chat)
    await chat.send("say on")
    await chat.idle()


async def test_a_running_and_a_pending_call_of_one_turn_are_told_apart(make_chat):
    chat = await make_chat()
    await chat.send("$ sleep 60\n$ echo two")
    first, second = await chat.cards(2)
    await chat.decide(first, "allow")

    async def runs():
        return await CommandSession.objects.filter(state="running").aexists()

    await chat.until(runs)
    await restart()

    assert await chat.status() == "waiting"
    (left,) = await chat.cards()
    assert left.pk == second.pk
    await chat.decide(left, "allow")
    await chat.idle()
    assert "two\n" in await chat.outputs()
    assert await whole(chat)


async def test_a_cut_request_is_ended_and_its_card_settled(make_chat):
    chat = await make_chat()
    await chat.send("$ echo hi\nsleep 60")
    (card,) = await chat.cards()

    await restart()

    assert await chat.status() == "idle"
    await card.arefresh_from_db()
    assert (card.decision, card.source) == ("deny", "restart")
    (decided,) = await chat.events("approval_decision")
    assert decided.source == "restart"
    assert (await chat.outputs())[0].startswith("[not run: ")
    assert [e.status for e in await chat.events("request_end")] == ["aborted"]
    assert await whole(chat)


async def test_a_decision_that_only_the_row_knows_is_put_on_record(make_chat):
    chat = await make_chat()
    await chat.send("$ echo hi")
    (card,) = await chat.cards()
    await runtime.stop_supervisor()
    # The decision is committed, then the process dies before its owner acts.
    await sync_to_async(decisions.decide)(
        chat.id,
        card.tool_call_id,
        decision="allow",
        username="paula",
        via="button",
    )
    owner = await Owner.objects.acreate(id="owner-dead", pid=1, host="here")
    await Session.objects.filter(pk=chat.id).aupdate(owner=owner, status="running")

    await runtime.start_supervisor()

    assert await chat.status() == "idle"
    (decided,) = await chat.events("approval_decision")
    assert (decided.decision, decided.decided_by) == ("allow", "paula")
    assert (await chat.outputs())[0].startswith("[not run: ")
    assert await chat.events("tool_started") == []
    assert await whole(chat)


async def test_stop_and_mode_change_work_on_a_session_that_waits_without_a_loop(
    make_chat,
):
    stopped, allowed = await make_chat(), await make_chat()
    for chat in (stopped, allowed):
        await chat.send("$ echo hi")
        await chat.cards()
    await restart()

    await runtime.interrupt(stopped.id, user=stopped.user)
    await runtime.set_mode(allowed.id, "allow-all", user=allowed.user)
    await stopped.idle()
    await allowed.idle()

    assert await stopped.outputs() == ["[interrupted: tool aborted by user]"]
    assert await allowed.outputs() == ["hi\n"]
    assert await whole(stopped) and await whole(allowed)


async def test_a_message_of_a_waiting_session_without_a_loop_is_busy(make_chat):
    chat = await make_chat()
    await chat.send("$ echo hi")
    await chat.cards()
    await restart()

    with pytest.raises(runtime.Refusal) as caught:
        await chat.send("say more")

    assert caught.value.code == "busy"


async def test_recovery_twice_changes_nothing_more(make_chat):
    chat = await make_chat("allow-all")
    await chat.send("$ sleep 60")
    await asyncio.sleep(0.3)
    await runtime.stop_supervisor()
    before = await chat.events()

    await sync_to_async(recovery.recover_session)(await chat.row())

    assert await chat.events() == before
    await runtime.start_supervisor()


async def test_a_card_whose_row_was_never_written_is_made_when_the_mode_asks(make_chat):
    chat = await make_chat()
    await chat.send("$ echo hi")
    await chat.cards()
    await runtime.stop_supervisor()
    await ApprovalRequest.objects.all().adelete()
    owner = await Owner.objects.acreate(id="owner-dead", pid=1, host="here")
    await Session.objects.filter(pk=chat.id).aupdate(owner=owner, status="running")

    await runtime.start_supervisor()

    (card,) = await chat.cards()
    await chat.decide(card, "allow", arguments_sha256=card.arguments_sha256)
    await chat.idle()
    assert await chat.outputs() == ["hi\n"]


async def test_the_supervisor_gives_up_idle_sessions_and_takes_them_up_again(make_chat):
    chat = await make_chat("allow-all")
    await chat.send("say one")
    await chat.idle()

    await supervisors.current().drop(chat.id)
    await chat.send("say two")
    await chat.idle()

    assert [p.text for p in await chat.events("text") if p.role == "assistant"] == [
        "one",
        "two",
    ]


async def test_a_waiting_session_without_its_folder_can_be_stopped_and_deleted(
    make_chat,
):
    chats = [await make_chat(), await make_chat()]
    for chat in chats:
        await chat.send("$ echo hi")
        await chat.cards()
    await restart()
    for chat in chats:
        shutil.rmtree((await chat.row()).workspace)
    stopped, deleted = chats

    await runtime.interrupt(stopped.id, user=stopped.user)
    await runtime.delete_session(deleted.id, user=deleted.user)

    assert await stopped.status() == "idle"
    for chat in chats:
        assert await chat.outputs() == ["[interrupted: tool aborted by user]"]
        (decided,) = await chat.events("approval_decision")
        assert (decided.source, decided.decided_by) == ("interrupt", "paula")
        assert await whole(chat)


async def test_only_a_session_without_a_running_command_leaves_memory(
    make_chat, monkeypatch
):
    monkeypatch.setattr(supervisors, "IDLE_S", 0)
    monkeypatch.setattr(supervisors, "LOOK_S", 0.05)
    await restart()  # the look-after begins with the shorter times
    busy, idle = await make_chat("allow-all"), await make_chat("allow-all")
    await busy.send('call exec_command {"cmd": "sleep 60", "yield_time_ms": 250}')
    await idle.send("say one")
    await busy.idle()
    await idle.idle()

    async def is_dropped():
        return idle.id not in supervisors.current().live

    await idle.until(is_dropped)
    await asyncio.sleep(0.3)

    assert busy.id in supervisors.current().live
    (process,) = await runtime.processes(busy.id)
    assert process["running"]
    await runtime.kill_process(busy.id, process["process_id"])
