"""The check a WebSocket passes before anyone looks at its cookie."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.http.request import split_domain_port, validate_host

from penguin_web.origins import is_own_origin
from penguin_web.proxy import Application, Scope

POLICY_VIOLATION = 1008


class OwnPagesOnly:
    """Let in what comes from this site's pages, or from a program without a page.

    A browser sends Origin with every WebSocket, and its cookie along: CSRF tokens play
    no part here, so this comparison is all that keeps other sites' pages out.
    """

    def __init__(self, application: Application) -> None:
        self._application = application

    async def __call__(self, scope: Scope, receive: Any, send: Any) -> None:
        """Run the application, or close with 403 before the handshake."""
        if self._is_allowed(scope):
            await self._application(scope, receive, send)
        else:
            await send({"type": "websocket.close", "code": POLICY_VIOLATION})

    def _is_allowed(self, scope: Scope) -> bool:
        headers = dict(scope["headers"])
        host = headers.get(b"host", b"").decode("latin-1")
        domain, _port = split_domain_port(host)
        allowed = settings.ALLOWED_HOSTS or ["localhost", "127.0.0.1", "[::1]"]
        if not validate_host(domain, allowed):
            return False
        if b"origin" not in headers:
            return True
        return is_own_origin(
            headers[b"origin"].decode("latin-1"),
            scheme="https" if scope.get("scheme") in {"https", "wss"} else "http",
            host=host,
            trusted=settings.CSRF_TRUSTED_ORIGINS,
        )
