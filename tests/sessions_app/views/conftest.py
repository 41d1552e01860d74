"""A supervisor in the test's own loop, and a session to look at and act on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.test import AsyncClient

from sessions_app import runtime
from sessions_app.models import Session
from sessions_app.runtime import configs


@pytest.fixture
async def supervisor(transactional_db, project):
    yield await runtime.start_supervisor()
    await runtime.stop_supervisor()


@pytest.fixture
def make_session(supervisor, project, project_admin):
    async def make(mode: str = "always-ask", **wish: Any) -> Session:
        return await runtime.create_session(
            project=project, user=project_admin, approval_mode=mode, **wish
        )

    return make


@pytest.fixture
async def session(make_session) -> Session:
    return await make_session()


@pytest.fixture
def log_in() -> Callable[..., Any]:
    """Return an asynchronous client that is logged in as the user."""

    async def log(user: Any, **more: Any) -> AsyncClient:
        client = AsyncClient(**more)
        await sync_to_async(client.force_login)(user)
        return client

    return log


@pytest.fixture
async def client(log_in, project_admin) -> AsyncClient:
    """A client of a person who may do everything in the project."""
    return await log_in(project_admin)


@pytest.fixture
async def foreign_session(make_session, project_admin) -> Session:
    """A session of a project that nobody of the test belongs to."""
    other = await sync_to_async(configs.create_project)("other")
    return await runtime.create_session(project=other, user=project_admin)
