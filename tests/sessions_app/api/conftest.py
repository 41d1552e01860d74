"""A caller of the API with a token, and a supervisor for what runs."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.http import HttpResponse
from django.test import AsyncClient

from sessions_app import runtime, tokens
from sessions_app.models import Project

WAIT_S = 20


class Caller:
    """Calls the API as one user."""

    def __init__(self, user: User, project: Project | None = None) -> None:
        self.user = user
        _, self.token = tokens.issue(user, project=project)
        self.client = AsyncClient()

    async def __call__(
        self, method: str, path: str, body: Any = None, **more: Any
    ) -> HttpResponse:
        """Send `body` as JSON; a path without a leading slash is below the API."""
        if not path.startswith("/"):
            path = f"/api/v1/{path}"
        if body is not None:
            more = {"content_type": "application/json"} | more
            more["data"] = body if isinstance(body, str | bytes) else json.dumps(body)
        more["headers"] = {"Authorization": f"Bearer {self.token}"} | more.get(
            "headers", {}
        )
        return await self.client.generic(method, path, **more)

    async def get(self, path: str) -> Any:
        """Return the parsed answer of a GET that must succeed."""
        response = await self("GET", path)
        assert response.status_code == 200, response.content
        return response.json()

    async def session(self, **body: Any) -> dict[str, Any]:
        """Make a session and return it."""
        response = await self("POST", "projects/default/sessions", body)
        assert response.status_code == 201, response.content
        return response.json()

    async def task(self, session: str, text: str, **body: Any) -> None:
        """Send a message that must be taken."""
        body = {"text": text, **body}
        response = await self("POST", f"sessions/{session}/tasks", body)
        assert response.status_code == 202, response.content

    async def until(
        self, is_true: Callable[[], Awaitable[Any]], wait_s: float = WAIT_S
    ) -> Any:
        """Ask until the answer is true; return it."""
        async with asyncio.timeout(wait_s):
            while not (found := await is_true()):
                await asyncio.sleep(0.02)
        return found

    async def until_status(self, session: str, status: str) -> None:
        """Wait until the session has that status."""

        async def has_status() -> bool:
            return (await self.get(f"sessions/{session}"))["status"] == status

        await self.until(has_status)

    async def card(self, session: str) -> dict[str, Any]:
        """Wait for a pending request and return it."""

        async def pending() -> Any:
            return await self.get(f"sessions/{session}/approvals?status=pending")

        return (await self.until(pending))[0]


@pytest.fixture
def caller(db):
    """Make callers of users."""

    async def make(user: User, project: Project | None = None) -> Caller:
        return await sync_to_async(lambda: Caller(user, project))()

    return make


@pytest.fixture
async def supervisor(transactional_db, project):
    """This process's supervisor, stopped with everything at the end."""
    yield await runtime.start_supervisor()
    await runtime.stop_supervisor()


@pytest.fixture
async def admin(supervisor, caller, project_admin) -> Caller:
    """A project admin on a running server."""
    return await caller(project_admin)


def error(response: HttpResponse) -> dict[str, Any]:
    """Return the error, which every failed answer must carry in the one shape."""
    assert response.headers["Content-Type"].startswith("application/json")
    body = response.json()
    assert set(body) == {"error"}
    assert set(body["error"]) == {"code", "message", "details"}
    assert body["error"]["message"]
    return body["error"]


@pytest.fixture(name="error")
def error_of():
    return error
