"""WebSocket addresses."""

from __future__ import annotations

from django.urls import path

from sessions_app.consumers import ProjectConsumer, SessionConsumer

websocket_urlpatterns = [
    path("ws/sessions/<str:session>/", SessionConsumer.as_asgi()),  # type: ignore[arg-type]
    path("ws/projects/<slug:project>/", ProjectConsumer.as_asgi()),  # type: ignore[arg-type]
]
