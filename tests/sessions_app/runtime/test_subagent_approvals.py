"""A subagent's calls: whose mode, where they are shown, what a decision does."""

from __future__ import annotations

import json

import pytest
from asgiref.sync import sync_to_async

from sessions_app import runtime
from sessions_app.models import ApprovalRequest, Session
from sessions_app.runtime import supervisor
from sessions_app.runtime.refusal import Refusal
from tests.sessions_app.runtime.subagents import (
    WAITS,
    card_of_child,
    cards_of_children,
    child_is,
    child_of,
    delegate,
    follow,
    let_go,
    output_of,
    record_of,
)
from traces_app.omnimessage import StopReason

pytestmark = pytest.mark.django_db(transaction=True)


async def test_a_call_of_a_subagent_is_asked_in_the_list_of_its_parent(make_chat):
    chat = await make_chat()
    card = await card_of_child(chat)

    (listed,) = await chat.cards()
    assert listed.pk == card.pk
    assert card.session_id == card.session.pk != chat.id
    assert card.origin == [card.session_id]
    assert card.name == "exec_command" and card.permission == "rw"
    assert await chat.status() == card.session.status == "waiting"
    await chat.decide(card, "allow")
    await chat.idle()

    assert (await output_of(chat)).output == "exec_command → completed"
    assert await sync_to_async(runtime.pending_requests)(chat.id) == []


async def test_a_denied_subagent_reacts(make_chat):
    chat = await make_chat()
    card = await card_of_child(chat)

    await chat.decide(card, "deny", reason="not now")
    await chat.idle()

    (output,) = await record_of(await child_of(chat), "tool_call_output")
    assert output.payload.output == "Tool call denied by user.\nReason: not now"
    assert (await output_of(chat)).output == "exec_command → aborted"


async def test_under_deny_all_a_subagent_is_denied_and_nobody_asked(make_chat):
    chat = await make_chat("allow-all")
    prompt = f"{WAITS}\nthen\n$ echo hi"
    await chat.send(delegate(prompt, yield_time_ms=250))
    await chat.idle()

    await runtime.set_mode(chat.id, "deny-all", user=chat.user)
    await let_go(chat)
    await child_is(chat, "idle")

    child = await child_of(chat)
    _, decision = await record_of(child, "approval_decision")
    assert (decision.payload.decision, decision.payload.source) == ("deny", "mode")
    assert decision.payload.mode == "deny-all"
    assert not await ApprovalRequest.objects.filter(session=child).aexists()


async def test_under_allow_all_nobody_is_asked(make_chat):
    chat = await make_chat("allow-all")

    await chat.send(delegate("$ echo hi\nthen\n$ echo ho"))
    await chat.idle()

    assert not await ApprovalRequest.objects.aexists()


@pytest.mark.parametrize(
    ("mode", "stop_reason"), [("allow-all", "completed"), ("deny-all", "aborted")]
)
async def test_a_new_mode_of_the_parent_decides_what_waits(
    make_chat, mode, stop_reason
):
    chat = await make_chat()
    card = await card_of_child(chat)

    await runtime.set_mode(chat.id, mode, user=chat.user)
    await chat.idle()

    await card.arefresh_from_db()
    assert card.source == "mode"
    assert (await output_of(chat)).output == f"exec_command → {stop_reason}"
    child = await child_of(chat)
    assert child.approval_mode == mode
    (changed,) = await record_of(child, "mode_changed")
    assert (changed.payload.to_mode, changed.payload.by) == (mode, "paula")


async def test_a_new_mode_counts_for_the_next_call_of_a_running_subagent(make_chat):
    chat = await make_chat("allow-all")
    prompt = f"{WAITS}\nthen\n$ echo hi"
    await chat.send(delegate(prompt, yield_time_ms=250))
    await chat.idle()

    await runtime.set_mode(chat.id, "always-ask", user=chat.user)
    await let_go(chat)

    (card,) = await chat.cards()
    assert json.loads(card.arguments) == {"cmd": "echo hi"}
    assert "always-ask, set by paula" in card.asked_because


async def test_only_the_mode_of_the_parent_counts(make_chat):
    chat = await make_chat()
    card = await card_of_child(chat, "$ true\nthen\n$ echo hi")
    rows = Session.objects.filter(pk=card.session_id)
    await rows.aupdate(approval_mode="allow-all")

    await chat.decide(card, "allow")

    (second,) = await chat.cards()
    assert second.pk != card.pk
    assert second.asked_because.startswith("mode always-ask")


async def test_the_mode_of_a_subagent_cannot_be_set(make_chat):
    chat = await make_chat("allow-all")
    await chat.send(delegate("say hi"))
    await chat.idle()

    with pytest.raises(Refusal) as refused:
        child = await child_of(chat)
        await runtime.set_mode(child.pk, "deny-all", user=chat.user)

    assert (refused.value.code, refused.value.status) == ("follows_parent", 409)


async def test_the_note_says_how_many_calls_wait_and_the_parent_reads_waiting(
    make_chat,
):
    chat = await make_chat()
    card = await card_of_child(chat, yield_time_ms=3000)

    async def has_output() -> list:
        return await chat.events("tool_call_output")

    await chat.until(has_output)

    output = await output_of(chat)
    assert output.details["pending_approvals"] == 1
    assert output.output.endswith("[pending approvals of the subagent: 1]")
    assert await chat.status() == "waiting"
    await chat.decide(card, "allow")
    await child_is(chat, "idle")
    await chat.idle()


async def test_a_decision_counts_though_nobody_polls(make_chat):
    chat = await make_chat()
    card = await card_of_child(chat, "$ echo hi\nthen\nsay done", yield_time_ms=250)
    await chat.until(lambda: is_free(chat))
    await chat.decide(card, "allow")
    await child_is(chat, "idle")
    await chat.idle()

    await chat.send(follow(card.session_id))
    (own,) = await chat.cards()
    await chat.decide(own, "allow")
    await chat.idle()

    assert (await output_of(chat)).output.startswith("done\n")


async def test_a_call_left_over_two_polls_is_decided_once(make_chat):
    chat = await make_chat()
    card = await card_of_child(chat, yield_time_ms=250)
    for _ in range(2):
        await chat.until(lambda: is_free(chat))
        await chat.send(follow(card.session_id, yield_time_ms=250))
        (poll,) = [c for c in await chat.cards(2) if c.session_id == chat.id]
        await chat.decide(poll, "allow")

    await chat.until(lambda: is_free(chat))
    assert (await output_of(chat)).details["pending_approvals"] == 1
    await chat.decide(card, "allow")
    await child_is(chat, "idle")

    decided = await record_of(card.session, "approval_decision")
    assert len(decided) == 1
    assert await sync_to_async(runtime.pending_requests)(chat.id) == []


async def test_a_parent_whose_subagent_waits_takes_a_message(make_chat):
    chat = await make_chat()
    card = await card_of_child(chat, yield_time_ms=250)

    await chat.until(lambda: is_free(chat))

    await chat.send("say meanwhile")

    async def has_answered() -> bool:
        texts = await chat.events("text")
        return any(t.text == "meanwhile" for t in texts if t.role == "assistant")

    await chat.until(has_answered)
    assert await chat.status() == "waiting"
    await chat.decide(card, "deny")
    await chat.idle()


async def is_free(chat) -> bool:
    """Return whether the parent's own task has ended."""
    return not supervisor.current().is_running(chat.id)


async def test_stopping_the_parent_denies_what_its_subagent_asks(make_chat):
    chat = await make_chat()
    card = await card_of_child(chat)

    await runtime.interrupt(chat.id, user=chat.user)
    await chat.idle()
    await child_is(chat, "idle")

    await card.arefresh_from_db()
    assert (card.decision, card.source) == ("deny", "interrupt")
    assert card.decided_by == "paula"
    assert (await output_of(chat)).stop_reason is StopReason.ABORTED


async def test_stopping_the_parent_stops_what_waits_in_the_background(make_chat):
    chat = await make_chat()
    card = await card_of_child(chat, yield_time_ms=250)
    await chat.until(lambda: is_free(chat))

    await runtime.interrupt(chat.id, user=chat.user)
    await chat.idle()

    await card.arefresh_from_db()
    assert (card.decision, card.source) == ("deny", "interrupt")
    assert await chat.events("abort") == []


async def test_two_subagents_ask_at_the_same_time(make_chat):
    chat = await make_chat()
    cards = await cards_of_children(chat, "$ echo 1", "$ echo 2")
    assert len({card.session_id for card in cards}) == 2
    for card in reversed(cards):
        assert await chat.status() == "waiting"
        await chat.decide(card, "allow")

    await chat.idle()

    outputs = await chat.outputs()
    assert outputs == ["exec_command → completed"] * 2


async def test_permission_is_that_of_the_subagents_own_tool(make_chat):
    chat = await make_chat("read-only")
    prompt = 'call describe_image {"source": "none.png"}'
    wish = {"provider": "demo", "model_id": "demo-text"}
    await chat.send(delegate(prompt, **wish))
    (own,) = await chat.cards()
    await chat.decide(own, "allow")
    await chat.idle()

    child = await child_of(chat)
    (decision,) = await record_of(child, "approval_decision")
    assert (decision.payload.decision, decision.payload.source) == ("allow", "mode")


async def test_a_person_can_stop_a_subagent_alone(make_chat):
    chat = await make_chat()
    card = await card_of_child(chat)

    await runtime.interrupt(card.session_id, user=chat.user)
    await chat.idle()

    output = await output_of(chat)
    assert output.stop_reason is StopReason.FAILED
    assert "interrupted by the user" in output.output
    assert await Session.objects.filter(status="waiting").acount() == 0
