"""What a trusted reverse proxy says about the caller, told to the rest of the site."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

Scope = dict[str, Any]
Application = Callable[..., Awaitable[None]]


class ForwardedCaller:
    """Put the proxy's X-Forwarded-* values where HTTP and WebSocket code looks.

    Of X-Forwarded-For the last address counts: the proxy itself wrote it, whatever the
    caller sent is to the left of it.
    """

    def __init__(self, application: Application) -> None:
        self._application = application

    async def __call__(self, scope: Scope, receive: Any, send: Any) -> None:
        """Run the application with the caller as the proxy saw it."""
        given = dict(scope["headers"])
        changed = dict(scope)
        if address := _last(given.get(b"x-forwarded-for")):
            changed["client"] = [address, 0]
        if proto := _last(given.get(b"x-forwarded-proto")):
            is_secure = proto.lower() in {"https", "wss"}
            names = ("wss", "ws") if scope["type"] == "websocket" else ("https", "http")
            changed["scheme"] = names[0] if is_secure else names[1]
        if host := _last(given.get(b"x-forwarded-host")):
            others = [pair for pair in scope["headers"] if pair[0] != b"host"]
            changed["headers"] = [*others, (b"host", host.encode("latin-1"))]
        await self._application(changed, receive, send)


def _last(header: bytes | None) -> str:
    return (header or b"").decode("latin-1").rpartition(",")[2].strip()
