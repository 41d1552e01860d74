from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from contextlib import aclosing

import pytest

from sessions_app.llm.client import (
    CredentialsError,
    ModelRequest,
)
from sessions_app.llm.providers import ModelSpec, make_client, prepare
from tests.fakes import (
    Answer,
    Call,
    Hold,
    Pause,
    Say,
    Think,
)
from traces_app.omnimessage import user_text
from traces_app.omnimessage.payloads import Usage

HELLO = ModelRequest(system_prompt="", messages=[user_text("hi")])


async def test_answer_streams_pieces_and_complete_messages_in_the_order_of_the_wire(
    provider,
):
    provider.server.add(
        Answer(Think("let me see"), Say("I list."), Call("ls", {"a": 1}))
    )

    items = await provider.ask()

    shapes = [
        (m.kind, getattr(m.payload, "event_type", ""))
        for m in items[:-1]
        if getattr(m.payload, "event_type", "") != "delta"
    ]
    assert shapes == [
        ("partial_thinking", "start"),
        ("partial_thinking", "stop"),
        ("thinking", ""),
        ("partial_text", "start"),
        ("partial_text", "stop"),
        ("text", ""),
        ("partial_tool_call", "start"),
        ("partial_tool_call", "stop"),
        ("tool_call", ""),
    ]


async def test_deltas_add_up_to_the_complete_messages(provider):
    provider.server.add(Answer(Say("one two three"), Call("ls", {"path": "größe"})))

    items = await provider.ask()

    def joined(kind, field):
        return "".join(getattr(m.payload, field) for m in items[:-1] if m.kind == kind)

    assert joined("partial_text", "text") == joined("text", "text") == "one two three"
    assert joined("partial_tool_call", "arguments") == joined("tool_call", "arguments")


async def test_usage_counts_uncached_input_as_written_to_the_cache(provider):
    provider.server.add(Answer(Say("ok"), tokens=(100, 60, 20)))

    usage = (await provider.ask())[-1]

    assert usage == Usage(cache_read=60, cache_write=40, output=20, total=120)


@pytest.mark.parametrize("open_provider", ["openai"], indirect=True)
async def test_comment_lines_keep_the_connection_alive(open_provider):
    async with open_provider(idle_timeout_s=1.5) as provider:
        beats = [Pause(0.5), b": keep-alive\n\n"] * 4
        provider.server.add(Answer(*beats, Say("after a while")))

        [text] = await provider.answer()

    assert text.text == "after a while"


@pytest.mark.parametrize("open_provider", ["openai"], indirect=True)
async def test_time_the_consumer_takes_is_no_silence_of_the_provider(open_provider):
    async with open_provider(idle_timeout_s=1.0) as provider:
        provider.server.add(Answer(Say("a b c")))

        async with aclosing(provider.client.stream(HELLO)) as stream:
            await anext(stream)
            await asyncio.sleep(1.2)
            rest = [item async for item in stream]

    assert isinstance(rest[-1], Usage)


async def test_closing_the_generator_closes_the_connection(provider):
    release = threading.Event()
    provider.server.add(Answer(Say("a"), Hold(release)))

    async with aclosing(provider.client.stream(HELLO)) as stream:
        await anext(stream)

    [request] = provider.server.requests
    assert await asyncio.to_thread(request.is_gone.wait, 10)


async def test_cancelled_consumer_closes_the_connection(provider):
    provider.server.add(Answer(Say("a"), Pause(30)))
    task = asyncio.create_task(provider.ask())
    while not provider.server.requests:
        await asyncio.sleep(0.01)

    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    [request] = provider.server.requests
    assert await asyncio.to_thread(request.is_gone.wait, 10)


async def test_key_goes_into_the_request_and_nothing_of_the_host_does(
    open_provider, monkeypatch
):
    for name in ("OPENAI_ADMIN_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID"):
        monkeypatch.setenv(name, "of-the-host")
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "of-the-host")
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    async with open_provider(api_key="key-7") as provider:
        provider.server.add(Answer(Say("ok")))
        await provider.ask()

    [request] = provider.server.requests
    assert request.headers["authorization"] == "Bearer key-7"
    assert "of-the-host" not in str(request.headers)


async def test_local_server_needs_no_key(open_provider):
    async with open_provider(api_key=None) as provider:
        provider.server.add(Answer(Say("ok")))
        [text] = await provider.answer()

    assert text.text == "ok"
    assert "authorization" not in provider.server.requests[0].headers


@pytest.mark.parametrize("protocol", ["openai", "anthropic"])
async def test_missing_key_fails_at_the_first_request_and_says_what_to_set(protocol):
    spec = ModelSpec(
        provider=protocol,
        model_id="m",
        is_vision=False,
        context_window=1000,
        protocol=protocol,
    )
    client = make_client(spec, api_key=None)

    with pytest.raises(CredentialsError) as caught:
        await anext(client.stream(HELLO))

    assert f"set {protocol.upper()}_API_KEY" in str(caught.value)


async def test_client_can_be_closed_and_asked_again(provider):
    provider.server.add(Answer(Say("one")), Answer(Say("two")))

    await provider.ask()
    await provider.client.aclose()
    [text] = await provider.answer()

    assert text.text == "two"


def test_importing_the_package_imports_no_sdk():
    code = (
        "import sys, asyncio, sessions_app.llm.providers as p\n"
        "spec = p.ModelSpec(provider='openai', model_id='m', is_vision=False,"
        " context_window=1)\n"
        "p.make_client(spec, api_key='k')\n"
        "print([n for n in ('openai', 'anthropic', 'httpx2') if n in sys.modules])\n"
        "asyncio.run(p.prepare(spec))\n"
        "print([n for n in ('openai', 'anthropic') if n in sys.modules])\n"
    )

    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )

    assert done.stdout.split("\n")[:2] == ["[]", "['openai']"]


async def test_demo_model_needs_no_sdk():
    spec = ModelSpec(
        provider="demo",
        model_id="demo",
        is_vision=True,
        context_window=1000,
        protocol="demo",
    )

    await prepare(spec)
    client = make_client(spec, api_key=None)

    assert (client.provider, client.model_id) == ("demo", "demo")
