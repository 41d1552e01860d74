"""Speaks OpenAI-compatible chat completions, to OpenAI and to most other servers."""

from __future__ import annotations

from typing import Any

from sessions_app.llm.client import ModelRequest
from sessions_app.llm.openai_request import chat_request
from sessions_app.llm.openai_stream import ChatStream
from sessions_app.llm.wire_client import WireClient


class OpenAIChatClient(WireClient):
    """One model behind a chat completions endpoint."""

    SDK = "openai"
    OFFICIAL_URL = "https://api.openai.com/v1"

    def _reader(self) -> ChatStream:
        return ChatStream()

    def _connect(self, sdk: Any, **options: Any) -> Any:
        # Left out, the SDK reads these from the host's environment and tells them
        # to whatever server is asked.
        client = sdk.AsyncOpenAI(
            admin_api_key="", organization="", project="", **options
        )
        client.organization = client.project = None
        return client

    async def _send(self, client: Any, request: ModelRequest, headers: Any) -> Any:
        body = chat_request(request, self._spec)
        return await client.chat.completions.create(**body, extra_headers=headers)
