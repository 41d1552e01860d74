"""Speaks Anthropic's Messages API."""

from __future__ import annotations

from typing import Any

from sessions_app.llm.anthropic_request import messages_request
from sessions_app.llm.anthropic_stream import MessageStream
from sessions_app.llm.client import ModelRequest
from sessions_app.llm.wire_client import WireClient


class AnthropicMessagesClient(WireClient):
    """One model behind a Messages endpoint."""

    SDK = "anthropic"
    OFFICIAL_URL = "https://api.anthropic.com"

    def _reader(self) -> MessageStream:
        return MessageStream()

    def _connect(self, sdk: Any, **options: Any) -> Any:
        # Prompts are nobody's telemetry, whatever the host's environment says.
        return sdk.AsyncAnthropic(open_telemetry=False, **options)

    async def _send(self, client: Any, request: ModelRequest, headers: Any) -> Any:
        body = messages_request(request, self._spec)
        return await client.messages.create(**body, extra_headers=headers)
