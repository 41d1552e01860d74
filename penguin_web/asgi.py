"""The way in: HTTP goes to Django, WebSockets to the consumers, after the same checks."""

from __future__ import annotations

import os
from typing import Any

from channels.auth import AuthMiddlewareStack
from channels.routing import ProtocolTypeRouter, URLRouter
from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "penguin_web.settings")
# First of all: the imports below need the apps to be loaded.
http_application = get_asgi_application()

from django.conf import settings  # noqa: E402 (see above)
from django.urls import re_path  # noqa: E402

from penguin_web.proxy import Application, ForwardedCaller, Scope  # noqa: E402
from penguin_web.request_threads import RequestThreads  # noqa: E402
from penguin_web.sockets import OwnPagesOnly  # noqa: E402
from sessions_app.routing import websocket_urlpatterns  # noqa: E402


async def no_such_socket(scope: Scope, receive: Any, send: Any) -> None:
    """Refuse a WebSocket address that nothing serves."""
    await send({"type": "websocket.close", "code": 4404})


# URLRouter takes ASGI applications where the stubs expect views.
nothing: Any = no_such_socket
addresses: list[Any] = [*websocket_urlpatterns, re_path("", nothing)]
sockets: Any = AuthMiddlewareStack(URLRouter(addresses))
application: Application = ProtocolTypeRouter(
    {"http": RequestThreads(http_application), "websocket": OwnPagesOnly(sockets)}
)
if settings.TRUST_PROXY:
    application = ForwardedCaller(application)
