"""A client of each wire in front of a scripted server."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest

from sessions_app.llm.client import LLMClient, ModelRequest
from sessions_app.llm.providers import ModelSpec, make_client
from tests.fakes import ScriptedServer
from traces_app.omnimessage import user_text
from traces_app.omnimessage.payloads import Usage

SDKS = ("openai", "anthropic")


@dataclass
class Provider:
    server: ScriptedServer
    client: LLMClient

    async def ask(self, *messages, into=None, **fields):
        """Return everything the stream yields; `into` keeps it when it raises."""
        items = [] if into is None else into
        request = ModelRequest(
            **{"system_prompt": "", "messages": messages or [user_text("hi")], **fields}
        )
        async for item in self.client.stream(request):
            items.append(item)
        return items

    async def answer(self, *messages, **fields):
        """Return the complete messages' payloads."""
        items = await self.ask(*messages, **fields)
        complete = [i for i in items if not isinstance(i, Usage) and not i.is_partial]
        return [message.payload for message in complete]


@asynccontextmanager
async def provider_of(sdk, *, api_key="key-1", idle_timeout_s=20.0, **facts):
    with ScriptedServer() as server:
        url = server.openai_url if sdk == "openai" else server.anthropic_url
        known = {"provider": sdk, "model_id": "model-1", "is_vision": True}
        spec = ModelSpec(
            **{**known, "context_window": 1000, "base_url": url, **facts},
            protocol=sdk,
        )
        client = make_client(spec, api_key=api_key, idle_timeout_s=idle_timeout_s)
        yield Provider(server, client)
        await client.aclose()


@pytest.fixture
async def chat():
    """An OpenAI-compatible provider."""
    async with provider_of("openai") as provider:
        yield provider


@pytest.fixture
async def anthropic():
    """An Anthropic provider."""
    async with provider_of("anthropic") as provider:
        yield provider


@pytest.fixture(params=SDKS)
async def provider(request):
    """A provider of either kind."""
    async with provider_of(request.param) as provider:
        yield provider


@pytest.fixture(params=SDKS)
def open_provider(request):
    """How to open a provider of either kind with other options."""
    return lambda **options: provider_of(request.param, **options)
