"""A budget stops a session before the next request, its subagents too."""

from __future__ import annotations

import pytest
from asgiref.sync import sync_to_async

from sessions_app.models import Session
from sessions_app.runtime import configs
from tests.fakes import Answer, Call, Say, ScriptedServer

pytestmark = pytest.mark.django_db(transaction=True)

DOCUMENT = """\
default_agent: default_agent
default_model: local/paid
models:
  - provider: local
    model_id: paid
    base_url: {url}
    price: {{input: 100, output: 100}}
{budget}
"""


@pytest.fixture
def make_paid_chat(make_chat, project):
    async def make(server: ScriptedServer, budget: str = ""):
        text = DOCUMENT.format(url=server.openai_url, budget=budget)
        await sync_to_async(configs.save)(project, text, base_version=1)
        return await make_chat("allow-all")

    return make


async def aborts(chat) -> list[str]:
    return [payload.reason for payload in await chat.events("abort")]


async def test_the_request_after_the_budget_is_not_made(make_paid_chat):
    script = [Answer(Call("exec_command", {"cmd": "echo hi"})), Answer(Say("never"))]
    with ScriptedServer(script) as server:
        chat = await make_paid_chat(server, "budget: {session_usd: 0.01}")
        await chat.send("go")
        await chat.idle()

        assert len(server.requests) == 1
    assert await chat.outputs() == ["hi\n"]
    (reason,) = await aborts(chat)
    assert reason.startswith("the budget of $0.0100 for a session is spent: $0.0120")


async def test_a_subagent_draws_on_the_budget_of_its_parent(make_paid_chat):
    script = [Answer(Call("run_subagent", {"prompt": "work"})), Answer(Say("never"))]
    with ScriptedServer(script) as server:
        chat = await make_paid_chat(server, "budget: {session_usd: 0.01}")
        await chat.send("go")
        await chat.idle()

        assert len(server.requests) == 1
    child = await Session.objects.aget(parent_id=chat.id)
    assert child.status == "idle"
    (output,) = await chat.events("tool_call_output")
    assert output.stop_reason == "failed" and "budget" in output.output
    assert len(await aborts(chat)) == 1


async def test_below_the_budget_nothing_is_stopped(make_paid_chat):
    script = [Answer(Call("exec_command", {"cmd": "echo hi"})), Answer(Say("done"))]
    with ScriptedServer(script) as server:
        chat = await make_paid_chat(server, "budget: {session_usd: 1}")
        await chat.send("go")
        await chat.idle()

    assert await aborts(chat) == []
    assert [t.text for t in await chat.events("text")] == ["go", "done"]


async def test_a_raised_budget_lets_the_next_message_go_on(make_paid_chat, project):
    script = [Answer(Call("exec_command", {"cmd": "echo hi"})), Answer(Say("done"))]
    with ScriptedServer(script) as server:
        chat = await make_paid_chat(server, "budget: {session_usd: 0.01}")
        await chat.send("go")
        await chat.idle()
        text = DOCUMENT.format(url=server.openai_url, budget="")
        await sync_to_async(configs.save)(project, text, base_version=2)

        await chat.send("go on")
        await chat.idle()

    assert [t.text for t in await chat.events("text")] == ["go", "go on", "done"]
