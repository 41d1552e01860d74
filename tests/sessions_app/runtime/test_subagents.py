"""Subagents under a real supervisor, played by the built-in model."""

from __future__ import annotations

import json
from typing import Any

import pytest
from asgiref.sync import sync_to_async

from sessions_app import runtime
from sessions_app.models import (
    CommandSession,
    ProcessState,
    Session,
    SubagentSession,
    SubagentState,
)
from sessions_app.runtime import configs
from sessions_app.runtime.refusal import Refusal
from tests.fakes import Answer, Say, ScriptedServer
from tests.sessions_app.runtime.subagents import (
    WAITS,
    child_is,
    child_of,
    children_of,
    delegate,
    follow,
    let_go,
    output_of,
    record_of,
)
from traces_app import reader
from traces_app.omnimessage import StopReason

pytestmark = pytest.mark.django_db(transaction=True)


async def test_the_answer_of_a_subagent_is_the_output(make_chat):
    chat = await make_chat("allow-all")

    await chat.send(delegate("$ echo hi\nthen\nsay Hello World"))
    await chat.idle()

    output = await output_of(chat)
    assert output.output == "Hello World"
    assert output.stop_reason is StopReason.COMPLETED


async def test_a_subagent_has_a_record_of_its_own_and_the_parent_a_pointer(make_chat):
    chat = await make_chat("allow-all")

    await chat.send(delegate("say hi"))
    await chat.idle()

    child = await child_of(chat)
    (meta,) = await record_of(child, "session_meta")
    assert meta.payload.source == "subagent"
    assert child.trace.parent_session_id == chat.id
    (call,) = await chat.events("tool_call")
    (pointer,) = await chat.events("subagent")
    assert (pointer.session_id, pointer.tool_call_id) == (child.pk, call.tool_call_id)
    stored = await sync_to_async(lambda: list(reader.iter_events(chat.trace_id)))()
    assert not any(event.message.origin for event in stored)


async def test_a_subagent_is_what_its_parent_is(make_chat):
    chat = await make_chat("allow-all", model="demo/demo-text", thinking_level="high")

    await chat.send(delegate("say hi"))
    await chat.idle()

    parent, child = await chat.row(), await child_of(chat)
    for field in ("project_id", "agent_id", "model_id", "thinking_level", "workspace"):
        assert getattr(child, field) == getattr(parent, field), field
    assert (child.depth, child.parent_id) == (1, chat.id)
    assert child.title == "say hi"


async def test_a_subagent_can_be_another_agent_with_another_model(make_chat, project):
    document = "system_prompt: Review.\nmodel: {thinking_level: low}\n"
    await sync_to_async(configs.create_agent)(project, "reviewer", text=document)
    chat = await make_chat("allow-all")
    wish = {"agent_id": "reviewer", "provider": "demo", "model_id": "demo-text"}

    await chat.send(delegate("say hi", **wish))
    await chat.idle()

    child = await child_of(chat)
    assert (child.agent.name, child.model_id) == ("reviewer", "demo-text")
    assert child.thinking_level is None  # as the parent's, whatever the agent says
    (meta,) = await record_of(child, "session_meta")
    assert meta.payload.system_prompt == "Review."


@pytest.mark.parametrize("level", [None, "high"])
async def test_the_model_of_a_subagent_thinks_as_much_as_its_parents(
    make_chat, project, level
):
    document = "system_prompt: Review.\nmodel: {thinking_level: low}\n"
    await sync_to_async(configs.create_agent)(project, "reviewer", text=document)
    wish = {"agent_id": "reviewer", "provider": "local", "model_id": "model"}
    with ScriptedServer([Answer(Say("Fine."))]) as server:
        entry = f"{{provider: local, model_id: model, base_url: '{server.openai_url}'}}"
        text, number = await sync_to_async(configs.document_text)(project)
        text = text.replace("models:", f"models:\n  - {entry}", 1)
        await sync_to_async(configs.save)(project, text, base_version=number)
        chat = await make_chat("allow-all", model="demo/demo", thinking_level=level)

        await chat.send(delegate("review it", **wish))
        await chat.idle()

    assert (await output_of(chat)).output == "Fine."
    (request,) = server.requests
    assert request.body.get("reasoning_effort") == level


@pytest.mark.parametrize(
    ("wish", "named"),
    [
        ({"agent_id": "nobody"}, "nobody"),
        ({"agent_id": "../default_agent"}, "../default_agent"),
        ({"provider": "no", "model_id": "such"}, "no/such"),
        ({"model_id": "demo-text"}, "provider"),
    ],
)
async def test_what_cannot_be_is_named_and_nothing_is_made(make_chat, wish, named):
    chat = await make_chat("allow-all")

    await chat.send(delegate("say hi", **wish))
    await chat.idle()

    output = await output_of(chat)
    assert output.stop_reason is StopReason.FAILED
    assert named in output.output
    assert await children_of(chat) == []
    assert await chat.events("subagent") == []


async def test_a_subagent_cannot_have_subagents(make_chat):
    chat = await make_chat("allow-all")

    await chat.send(delegate(delegate("say deep")))
    await chat.idle()

    child = await child_of(chat)
    (tools,) = await record_of(child, "tool_list_ready")
    names = {tool["name"] for tool in tools.payload.tools}
    assert names == {"exec_command", "input_command", "read_image"}
    (output,) = await record_of(child, "tool_call_output")
    assert output.payload.stop_reason is StopReason.FAILED
    assert await Session.objects.acount() == 2


async def test_the_model_is_told_the_output_and_nothing_else(make_chat):
    chat = await make_chat("allow-all")
    await chat.send(delegate("think secret\nsay answer"))
    await chat.idle()

    kinds = [payload.KIND for payload in await chat.events()]

    assert "thinking" not in kinds
    assert (await output_of(chat)).output == "answer"


async def test_a_long_task_goes_to_the_background_and_can_be_followed(make_chat):
    chat = await make_chat("allow-all")
    prompt = f"say one\n{WAITS}\nthen\nsay two"
    await chat.send(delegate(prompt, yield_time_ms=1500))
    await chat.idle()
    output = await output_of(chat)
    subagent_id = output.details["subagent_id"]
    assert output.output == (
        f"one\n[subagent still running with subagent_id {subagent_id}]"
    )
    assert output.details["running"] is True
    await let_go(chat)

    await chat.send(follow(subagent_id))
    await chat.idle()

    output = await output_of(chat)
    assert output.output == f"two\n[subagent idle with subagent_id {subagent_id}]"
    assert (await child_of(chat)).status == "idle"


async def test_an_idle_subagent_takes_another_task(make_chat):
    chat = await make_chat("allow-all")
    await chat.send(delegate("sleep 0.5\nsay one", yield_time_ms=250))
    await chat.idle()
    subagent_id = (await output_of(chat)).details["subagent_id"]
    await chat.send(follow(subagent_id))
    await chat.idle()

    await chat.send(follow(subagent_id, prompt="say two"))
    await chat.idle()

    assert (await output_of(chat)).output.startswith("two\n")
    assert len(await children_of(chat)) == 1
    child = await child_of(chat)
    assert child.subagent.state == SubagentState.IDLE


async def test_a_subagent_that_fails_is_reported(make_chat):
    chat = await make_chat("allow-all")

    await chat.send(delegate("say before\nfail auth"))
    await chat.idle()

    output = await output_of(chat)
    assert output.stop_reason is StopReason.FAILED
    assert output.output.startswith("before\n[subagent did not complete: ")
    assert "told to fail" in output.output


async def test_stopping_the_parent_stops_the_subagent(make_chat):
    chat = await make_chat("allow-all")
    await chat.send(delegate("$ sleep 60"))
    child = await child_of(chat)

    async def has_begun() -> list[Any]:
        return await record_of(child, "tool_started")

    await chat.until(has_begun)
    await runtime.interrupt(chat.id, user=chat.user)
    await chat.idle()

    await child_is(chat, "idle")
    assert (await output_of(chat)).stop_reason is StopReason.ABORTED
    assert [m.kind for m in await record_of(child)][-1] == "abort"


async def test_stopping_the_parent_stops_a_subagent_in_the_background(make_chat):
    chat = await make_chat("allow-all")
    await chat.send(delegate("sleep 60", yield_time_ms=250))
    await chat.idle()

    await runtime.interrupt(chat.id, user=chat.user)

    await child_is(chat, "idle")
    assert await chat.events("abort") == []  # nothing of its own ran


async def test_deleting_the_parent_ends_and_deletes_the_subagent(make_chat):
    chat = await make_chat("always-ask")
    await chat.send(delegate("$ echo hi", yield_time_ms=250))
    (own,) = await chat.cards()
    await chat.decide(own, "allow")
    (card,) = [row for row in await chat.cards() if row.session_id != chat.id]

    await runtime.delete_session(chat.id, user=chat.user)

    child = await child_of(chat)
    assert child.deleted_at is not None and child.status == "idle"
    await card.arefresh_from_db()
    assert (card.decision, card.source) == ("deny", "interrupt")
    (output,) = await record_of(child, "tool_call_output")
    assert output.payload.output == "[interrupted: tool aborted by user]"


async def test_archiving_is_refused_while_a_subagent_works(make_chat):
    chat = await make_chat("allow-all")
    await chat.send(delegate("sleep 60", yield_time_ms=250))
    await chat.idle()

    with pytest.raises(Refusal, match="subagent"):
        await runtime.archive(chat.id, True, user=chat.user)


async def test_people_do_not_give_a_subagent_tasks(make_chat):
    chat = await make_chat("allow-all")
    await chat.send(delegate("say hi"))
    await chat.idle()
    child = await child_of(chat)

    with pytest.raises(Refusal) as refused:
        await runtime.start_task(child.pk, text="say more", user=chat.user)

    assert (refused.value.code, refused.value.status) == ("follows_parent", 409)


async def test_twelve_at_once_make_eight_sessions(make_chat):
    chat = await make_chat("allow-all")
    await chat.send("\n".join([delegate("sleep 60", yield_time_ms=250)] * 12))
    await chat.idle()

    outputs = await chat.events("tool_call_output")
    failed = [o for o in outputs if o.stop_reason is StopReason.FAILED]
    assert len(failed) == 4
    assert all("too many subagents" in o.output for o in failed)
    assert len(await children_of(chat)) == 8
    numbers = [child.subagent.number for child in await children_of(chat)]
    assert numbers == list(range(1, 9))


async def test_an_evicted_subagent_is_not_just_unknown(make_chat):
    chat = await make_chat("allow-all")
    await chat.send("\n".join([delegate("sleep 0.5", yield_time_ms=250)] * 8))
    await chat.idle()

    async def are_idle() -> bool:
        idle = SubagentSession.objects.filter(state=SubagentState.IDLE)
        return await idle.acount() == 8

    await chat.until(are_idle)
    await chat.send(delegate("say hi"))
    await chat.idle()
    evicted = await SubagentSession.objects.aget(state=SubagentState.EVICTED)

    await chat.send(follow(evicted.pk))
    await chat.idle()

    assert f"subagent {evicted.pk} was evicted" in (await output_of(chat)).output


async def test_no_process_of_a_subagent_is_left(make_chat):
    chat = await make_chat("allow-all")
    command = {"cmd": "sleep 60", "yield_time_ms": 250}
    prompt = f"call exec_command {json.dumps(command)}\nthen\nsay started"

    await chat.send(delegate(prompt))
    await chat.idle()

    async def has_ended() -> bool:
        rows = CommandSession.objects.filter(session__parent_id=chat.id)
        return not await rows.filter(state=ProcessState.RUNNING).aexists()

    assert (await output_of(chat)).output == "started"
    await chat.until(has_ended)
