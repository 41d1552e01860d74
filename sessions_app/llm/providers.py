"""From a model's facts to its client."""

from __future__ import annotations

import asyncio
import importlib

from sessions_app.llm.anthropic_messages import AnthropicMessagesClient
from sessions_app.llm.client import LLMClient
from sessions_app.llm.demo import DemoClient
from sessions_app.llm.model_spec import ModelSpec, split_model_name
from sessions_app.llm.openai_chat import OpenAIChatClient

__all__ = ["ModelSpec", "make_client", "prepare", "split_model_name"]

IDLE_TIMEOUT_S = 300.0
_CLIENTS = {"openai": OpenAIChatClient, "anthropic": AnthropicMessagesClient}


def make_client(
    spec: ModelSpec, *, api_key: str | None, idle_timeout_s: float = IDLE_TIMEOUT_S
) -> LLMClient:
    """Return a client for the model; cheap, nothing is imported or connected yet."""
    if spec.protocol == "demo":
        return DemoClient(spec)
    client = _CLIENTS[spec.protocol]
    return client(spec, api_key=api_key, idle_timeout_s=idle_timeout_s)


async def prepare(spec: ModelSpec) -> None:
    """Import the provider's SDK in a thread, so that the first answer is quicker."""
    if spec.protocol != "demo":
        await asyncio.to_thread(importlib.import_module, _CLIENTS[spec.protocol].SDK)
