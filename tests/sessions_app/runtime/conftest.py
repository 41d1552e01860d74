"""A supervisor in the test's own loop, and sessions to run in it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from asgiref.sync import sync_to_async

from sessions_app import runtime
from sessions_app.models import ApprovalRequest, Session
from sessions_app.runtime import configs
from tests.fakes import ScriptedServer
from tests.sessions_app.environment.web_server import WebServer
from tests.sessions_app.runtime.image_stories import WIRES
from traces_app import reader

WAIT_S = 20


@pytest.fixture
async def supervisor(transactional_db, project):
    """This process's supervisor, stopped with everything at the end."""
    yield await runtime.start_supervisor()
    await runtime.stop_supervisor()


class Chat:
    """One session as a test drives it."""

    def __init__(self, session: Session, user: Any) -> None:
        self.id: str = session.pk
        self.trace_id: int = session.trace_id
        self.user = user

    async def send(self, text: str, **more: Any) -> None:
        await runtime.start_task(self.id, text=text, user=self.user, **more)

    async def row(self) -> Session:
        return await Session.objects.aget(pk=self.id)

    async def status(self) -> str:
        return (await self.row()).status

    async def until(self, is_true: Callable[[], Any]) -> Any:
        """Wait until the coroutine function returns something true; return it."""
        async with asyncio.timeout(WAIT_S):
            while not (found := await is_true()):
                await asyncio.sleep(0.01)
        return found

    async def idle(self) -> None:
        async def is_idle() -> bool:
            return await self.status() == "idle"

        await self.until(is_idle)

    async def cards(self, count: int = 1) -> list[ApprovalRequest]:
        """Wait for `count` pending requests and return them, oldest first."""

        async def look() -> list[ApprovalRequest] | None:
            rows = await sync_to_async(runtime.pending_requests)(self.id)
            return rows if len(rows) == count else None

        return await self.until(look)

    async def decide(self, row: ApprovalRequest, decision: str, **more: Any):
        return await runtime.decide(
            row.session_id,
            row.tool_call_id,
            decision=decision,
            user=self.user,
            via="button",
            **more,
        )

    async def events(self, *kinds: str) -> list[Any]:
        """Return the payloads on record, of the kinds only when some are given."""
        stored = await sync_to_async(lambda: list(reader.iter_events(self.trace_id)))()
        return [e.message.payload for e in stored if not kinds or e.kind in kinds]

    async def outputs(self) -> list[str]:
        return [o.output for o in await self.events("tool_call_output")]


@pytest.fixture
def make_chat(supervisor, project, project_admin):
    """Make a session in the given mode."""

    async def make(mode: str = "always-ask", **wish: Any) -> Chat:
        session = await runtime.create_session(
            project=project, user=project_admin, approval_mode=mode, **wish
        )
        return Chat(session, project_admin)

    return make


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    """A model provider that plays a script."""
    with ScriptedServer() as server:
        yield server


@pytest.fixture
def web() -> Iterator[WebServer]:
    """A web server on loopback."""
    with WebServer() as server:
        yield server


@pytest.fixture
def offer(project, server):
    """Offer `lab-<wire>/eyes` (sees) and `lab-<wire>/words` (does not)."""

    async def save(**more: Any) -> None:
        urls = {"openai": server.openai_url, "anthropic": server.anthropic_url}
        models = [
            {
                "provider": f"lab-{wire}",
                "model_id": name,
                "vision": name == "eyes",
                "base_url": urls[wire],
                "protocol": wire,
            }
            for wire in WIRES
            for name in ("eyes", "words")
        ]
        document = {"default_agent": "default_agent", "models": models, **more}
        text = json.dumps(document)
        _, number = await sync_to_async(configs.document_text)(project)
        await sync_to_async(configs.save)(project, text, base_version=number)

    return save
