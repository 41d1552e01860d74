"""What a restart leaves of subagents: cards that can be decided, answers that differ."""

from __future__ import annotations

import pytest
from asgiref.sync import sync_to_async

from sessions_app import runtime
from sessions_app.models import SubagentState
from tests.sessions_app.runtime.subagents import (
    card_of_child,
    child_is,
    child_of,
    delegate,
    follow,
    output_of,
    record_of,
)
from traces_app.omnimessage import StopReason

pytestmark = pytest.mark.django_db(transaction=True)


async def restart() -> None:
    await runtime.stop_supervisor()
    await runtime.start_supervisor()


PROMPT = "$ echo hi\nthen\nsay done"


async def test_a_card_of_a_subagent_outlives_a_restart(make_chat):
    chat = await make_chat()
    card = await card_of_child(chat, PROMPT)

    await restart()

    assert await chat.status() == "waiting"
    assert (await child_of(chat)).status == "waiting"
    (listed,) = await sync_to_async(runtime.pending_requests)(chat.id)
    assert listed.pk == card.pk
    output = await output_of(chat)
    assert output.stop_reason is StopReason.ABORTED
    assert "side effects is unknown" in output.output


async def test_the_decision_lets_the_turn_of_the_subagent_go_on(make_chat):
    chat = await make_chat()
    card = await card_of_child(chat, PROMPT)
    await restart()

    await chat.decide(card, "allow")
    await child_is(chat, "idle")
    await chat.idle()

    child = await child_of(chat)
    texts = [m.payload.text for m in await record_of(child, "text")]
    assert texts[-1] == "done"
    assert len(await chat.events("tool_call_output")) == 1  # the parent ran nothing


async def test_a_new_mode_decides_what_waits_after_a_restart(make_chat):
    chat = await make_chat()
    await card_of_child(chat, PROMPT)
    await restart()

    await runtime.set_mode(chat.id, "allow-all", user=chat.user)
    await child_is(chat, "idle")
    await chat.idle()

    (output,) = await record_of(await child_of(chat), "tool_call_output")
    assert output.payload.output == "hi\n"


async def test_stopping_the_parent_settles_what_waits_after_a_restart(make_chat):
    chat = await make_chat()
    card = await card_of_child(chat, PROMPT)
    await restart()

    await runtime.interrupt(chat.id, user=chat.user)
    await child_is(chat, "idle")
    await chat.idle()

    await card.arefresh_from_db()
    assert (card.decision, card.source, card.decided_by) == (
        "deny",
        "interrupt",
        "paula",
    )


async def test_a_subagent_that_worked_is_lost_to_its_parent(make_chat):
    chat = await make_chat("allow-all")
    await chat.send(delegate("sleep 60", yield_time_ms=250))
    await chat.idle()
    subagent_id = (await output_of(chat)).details["subagent_id"]
    await restart()
    assert (await child_of(chat)).subagent.state == SubagentState.LOST

    await chat.send(follow(subagent_id))
    await chat.idle()

    output = await output_of(chat)
    assert output.stop_reason is StopReason.FAILED
    assert f"subagent {subagent_id} was lost" in output.output


async def test_an_idle_subagent_stays_within_reach(make_chat):
    chat = await make_chat("allow-all")
    await chat.send(delegate("sleep 0.4\nsay one", yield_time_ms=250))
    await chat.idle()
    subagent_id = (await output_of(chat)).details["subagent_id"]
    await chat.send(follow(subagent_id))
    await chat.idle()
    await restart()

    await chat.send(follow(subagent_id, prompt="say two"))
    await chat.idle()

    assert (await output_of(chat)).output.startswith("two\n")
