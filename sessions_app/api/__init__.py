"""The JSON API: every call, its OpenAPI document, its credentials and its errors."""

from __future__ import annotations

from ninja import NinjaAPI

from sessions_app.api import approvals, documents, record, sessions, stream
from sessions_app.api.credentials import Credentials, StrictJson
from sessions_app.api.errors import add_handlers

# The documentation page would load its script from elsewhere, so there is none.
api = NinjaAPI(
    title="Penguin Web",
    version="1",
    description="Run agents, decide their calls, read the record.",
    docs_url=None,
    auth=Credentials(),
    parser=StrictJson(),
    urls_namespace="api",
)
for _module in (sessions, approvals, record, stream, documents):
    api.add_router("", _module.router)
add_handlers(api)
