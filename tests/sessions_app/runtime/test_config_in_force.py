"""Which version of the agent's document a task goes by, and when a newer one counts."""

from __future__ import annotations

import pytest
from asgiref.sync import sync_to_async

from sessions_app import runtime
from sessions_app.models import Agent
from sessions_app.runtime import configs

pytestmark = pytest.mark.django_db(transaction=True)

NO_TOOLS = "system_prompt: Only talk.\ntools: {builtin: []}\n"


@pytest.fixture
def save_agent(project):
    async def save(text: str) -> None:
        agent = await Agent.objects.aget(project=project)
        _, base = await sync_to_async(configs.document_text)(agent)
        await sync_to_async(configs.save)(agent, text, base_version=base)

    return save


async def versions(chat) -> list[int]:
    return [e.version["agent"] for e in await chat.events("config_in_force")]


async def test_running_task_keeps_its_version_and_the_next_takes_the_newest(
    make_chat, save_agent
):
    chat = await make_chat()
    await chat.send("$ echo one\nthen\n$ echo two\nthen\nsay done")
    (card,) = await chat.cards()
    await save_agent(NO_TOOLS)
    await chat.decide(card, "allow")
    (card,) = await chat.cards()
    await chat.decide(card, "allow")
    await chat.idle()

    assert await chat.outputs() == ["one\n", "two\n"]
    assert await versions(chat) == [1]

    await chat.send("$ echo three")
    (card,) = await chat.cards()
    await chat.decide(card, "allow")
    await chat.idle()
    assert "unknown tool" in (await chat.outputs())[-1]
    assert await versions(chat) == [1, 2]


async def test_task_that_comes_back_after_a_restart_keeps_its_version_too(
    make_chat, save_agent
):
    chat = await make_chat()
    await chat.send("$ echo one\nthen\nsay done")
    (card,) = await chat.cards()
    await save_agent(NO_TOOLS)
    await runtime.stop_supervisor()
    await runtime.start_supervisor()

    await chat.decide(card, "allow")
    await chat.idle()

    assert await chat.outputs() == ["one\n"]
    assert await versions(chat) == [1]


async def test_decision_names_the_versions_in_force(make_chat, save_agent):
    await save_agent("system_prompt: Work.\n")
    chat = await make_chat("allow-all")
    await chat.send("$ echo hi")
    await chat.idle()

    (decided,) = await chat.events("approval_decision")
    assert decided.config_version == {"project": 1, "agent": 2}


async def test_model_gets_the_tools_of_its_class_and_no_more(make_chat):
    chat = await make_chat("allow-all", model="demo/demo-text")
    await chat.send("say hi")
    await chat.idle()

    (ready,) = await chat.events("tool_list_ready")
    names = [tool["name"] for tool in ready.tools]
    assert "describe_image" in names and "read_image" not in names
    assert {key for tool in ready.tools for key in tool} == {
        "name",
        "description",
        "parameters",
    }
