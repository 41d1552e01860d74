"""What the clients on top of the official SDKs share.

1. The SDK is imported, in a thread, when the first answer is asked for: it takes up
   to seconds, and most servers start without needing one.
2. Retries belong to the agent loop alone, so the SDK makes none.
3. The idle timeout is the socket's read timeout. Every byte of the provider starts it
   anew, comment lines that keep the connection alive too; a busy server that sends
   no headers yet is waited for; the time a consumer takes does not count.
4. The SDKs end a dropped stream without an exception: the reader of the wire says
   whether the answer was whole, and once it is, nothing that happens matters.
"""

from __future__ import annotations

import asyncio
import importlib
import ipaddress
import re
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import aclosing
from typing import Any, ClassVar, Protocol
from urllib.parse import urlsplit

from sessions_app.llm.client import (
    CredentialsError,
    InvalidRequestError,
    LLMError,
    MalformedStreamError,
    ModelRequest,
    RequestTimeoutError,
)
from sessions_app.llm.model_spec import ModelSpec
from sessions_app.llm.wire_errors import (
    causes,
    connection_error,
    root_cause,
    status_error,
)
from traces_app.omnimessage import OmniMessage
from traces_app.omnimessage.payloads import Usage

CONNECT_TIMEOUT_S = 30.0
SHORTEST_SECRET = 8  # characters


class WireReader(Protocol):
    """Turns the events of one answer into messages."""

    @property
    def linger_s(self) -> float | None:
        """How long to wait for what is left; None while the answer is not whole."""
        ...

    def feed(self, event: Mapping[str, Any]) -> Iterator[OmniMessage]:
        """Take one event."""
        ...

    def end(self) -> Iterator[Usage]:
        """Yield the usage; raises `LLMError` if the answer is not whole."""
        ...


class WireClient(ABC):
    """An `LLMClient` on top of an official SDK."""

    SDK: ClassVar[str]  # name of the module
    OFFICIAL_URL: ClassVar[str]

    def __init__(
        self, spec: ModelSpec, *, api_key: str | None, idle_timeout_s: float
    ) -> None:
        self.provider = spec.provider
        self.model_id = spec.model_id
        self.is_vision = spec.is_vision
        self.context_window = spec.context_window
        self._spec = spec
        self._api_key = api_key or None
        self._idle_timeout_s = idle_timeout_s
        self._base_url = spec.base_url or self.OFFICIAL_URL
        self._client: Any = None
        self._opening = asyncio.Lock()

    @abstractmethod
    def _reader(self) -> WireReader:
        """Return the reader of one answer."""

    @abstractmethod
    def _connect(self, sdk: Any, **options: Any) -> Any:
        """Return the SDK's client."""

    @abstractmethod
    async def _send(self, client: Any, request: ModelRequest, headers: Any) -> Any:
        """Send the request and return the SDK's stream."""

    async def stream(
        self, request: ModelRequest
    ) -> AsyncGenerator[OmniMessage | Usage, None]:
        """Ask the model; closing the generator closes the connection."""
        self._check()
        async with self._opening:
            if self._client is None:
                self._client = await asyncio.to_thread(self._open)
        reader = self._reader()
        async with aclosing(self._events(request, reader)) as events:
            async for event in events:
                for message in reader.feed(event):
                    yield message
        for usage in reader.end():
            yield usage

    async def aclose(self) -> None:
        """Release the connections."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    async def _events(
        self, request: ModelRequest, reader: WireReader
    ) -> AsyncGenerator[Mapping[str, Any], None]:
        """Yield the events of the stream; raises `LLMError`."""
        sdk = importlib.import_module(self.SDK)
        # The SDKs want some key; a server that needs none is not sent one.
        headers = {} if self._api_key else {"Authorization": sdk.Omit()}
        has_begun = False
        try:
            async with await self._send(self._client, request, headers) as stream:
                has_begun = True
                events = aiter(stream)
                while True:
                    async with asyncio.timeout(reader.linger_s):
                        event = await anext(events)
                    yield _mapping(event)
        except StopAsyncIteration:
            return
        except _failures(sdk) as error:
            if reader.linger_s is None:
                raise self._translated(sdk, error, has_begun=has_begun) from None

    def _check(self) -> None:
        """Raise for what no request can mend."""
        if self._api_key is None and self._spec.needs_key:
            raise CredentialsError(f"no key for {self.provider}; {self._spec.key_hint}")
        if not _is_http(self._base_url):
            raise InvalidRequestError(
                f"base_url of {self._spec.name} must be an http or https address"
            )

    def _open(self) -> Any:
        """Return a client with connections of its own; blocks, so not for the loop."""
        sdk = importlib.import_module(self.SDK)
        httpx = importlib.import_module("httpx2")
        silence = self._idle_timeout_s
        connections = sdk.DefaultAsyncHttpxClient(
            # A proxy of the host may be the only way out, never the way to itself.
            trust_env=not _is_loopback(self._base_url),
            timeout=httpx.Timeout(silence, connect=min(CONNECT_TIMEOUT_S, silence)),
        )
        return self._connect(
            sdk,
            api_key=self._api_key or "none",
            base_url=self._base_url,
            http_client=connections,
            max_retries=0,
        )

    def _translated(self, sdk: Any, error: Exception, *, has_begun: bool) -> LLMError:
        found = self._error(sdk, error, has_begun=has_begun)
        if self._api_key and self._api_key in str(found):
            found.args = (_without_key(str(found), self._api_key),)
        return found

    def _error(self, sdk: Any, error: Any, *, has_begun: bool) -> LLMError:
        httpx = importlib.import_module("httpx2")
        if isinstance(error, sdk.APITimeoutError | httpx.TimeoutException):
            return RequestTimeoutError(self._timeout_words(httpx, error))
        if isinstance(error, sdk.APIError) and not isinstance(
            error, sdk.APIConnectionError
        ):
            return status_error(
                status=getattr(error, "status_code", None),
                body=error.body,
                text=str(error),
                provider=self.provider,
                key_hint=self._spec.key_hint,
            )
        if isinstance(error, ValueError):
            cause = root_cause(error)
            return MalformedStreamError(f"{self.provider} sent no valid JSON: {cause}")
        return connection_error(
            error,
            provider=self.provider,
            address=_address(self._base_url),
            has_begun=has_begun,
        )

    def _timeout_words(self, httpx: Any, error: Exception) -> str:
        if any(isinstance(link, httpx.ConnectTimeout) for link in causes(error)):
            address = _address(self._base_url)
            return f"no connection to {self.provider} at {address}: timed out"
        return f"{self.provider} sent nothing for {self._idle_timeout_s:g} s"


def _failures(sdk: Any) -> tuple[type[Exception], ...]:
    """Return what the SDK and the layers below it raise; not all of it is wrapped."""
    httpx = importlib.import_module("httpx2")
    anyio = importlib.import_module("anyio")
    return (
        sdk.APIError,
        httpx.HTTPError,
        anyio.EndOfStream,
        OSError,
        ValueError,
    )


def _mapping(event: Any) -> Mapping[str, Any]:
    """Return the event as it was on the wire; what is no object says nothing."""
    if not hasattr(event, "to_dict"):
        return {}
    found: dict[str, Any] = event.to_dict(warnings=False)
    return found


def _without_key(text: str, key: str) -> str:
    """Return the text with the key made unreadable.

    Local servers are given keys like "x" or "none": what is too short to be a secret
    goes only where it stands alone, else it would be cut out of every word.
    """
    pattern = re.escape(key)
    if len(key) < SHORTEST_SECRET:
        pattern = rf"(?<!\w){pattern}(?!\w)"
    return re.sub(pattern, "[key]", text)


def _is_http(url: str) -> bool:
    try:
        parts = urlsplit(url)
        has_port = parts.port is None or parts.port > 0
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname) and has_port


def _is_loopback(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def _address(url: str) -> str:
    """Return the address without a password that may stand in it."""
    parts = urlsplit(url)
    port = f":{parts.port}" if parts.port else ""
    return f"{parts.scheme}://{parts.hostname}{port}"
