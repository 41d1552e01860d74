"""Every address, every method, every role: who gets in, and how others are refused.

The addresses come from the URL conf: a new one without a row in `TABLE` fails here.
The admin has tests of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from channels.routing import URLRouter
from channels.testing import WebsocketCommunicator
from django.contrib.auth.models import AnonymousUser, User
from django.test import AsyncClient
from django.urls import URLPattern, URLResolver, get_resolver

from sessions_app import runtime
from sessions_app.models import (
    ApprovalRequest,
    CommandSession,
    Membership,
    Project,
    Role,
    Session,
)
from sessions_app.permissions import ALLOWED, Action
from sessions_app.routing import websocket_urlpatterns

pytestmark = pytest.mark.django_db(transaction=True)

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
JSON = "application/json"
DIGEST = "0" * 64


@dataclass(frozen=True, kw_only=True)
class Row:
    """What a method of an address needs, and what it answers to those who may."""

    action: Action
    body: dict[str, Any] | str | None = None
    answers: tuple[int, ...] = (200,)
    is_destructive: bool = False


def page(action: Action, **more: Any) -> dict[str, Row]:
    return {"GET": Row(action=action, **more)}


def act(action: Action, *answers: int, **body: str) -> dict[str, Row]:
    return {"POST": Row(action=action, body=body, answers=answers or (303,))}


P = "p/<slug:project>/"
S = f"{P}s/<str:session>/"
A = "api/v1/"
AS = f"{A}sessions/<session_id>"
SAVE = {"yaml": "{}", "base_version": 99}

TABLE: dict[str, dict[str, Row]] = {
    # Pages
    f"{P}sessions/": page(Action.READ),
    f"{P}sessions/new/": {
        "GET": Row(action=Action.OPERATE),
        "POST": Row(action=Action.OPERATE, body={"agent": "none"}, answers=(422,)),
    },
    f"{P}approvals/": page(Action.READ),
    f"{P}settings/": page(Action.READ),
    f"{P}traces/": page(Action.READ),
    S: page(Action.READ),
    f"{S}trace/": page(Action.READ),
    f"{S}outputs/<int:seq>/": page(Action.READ, answers=(404,)),
    f"{S}images/<int:seq>/<int:number>/": page(Action.READ, answers=(404,)),
    f"{S}send/": act(Action.OPERATE, 422, text=" "),
    f"{S}attach/": act(Action.OPERATE, 422),
    f"{S}detach/": act(Action.OPERATE, image="99"),
    f"{S}attached/<int:image>/": page(Action.OPERATE, answers=(404,)),
    f"{S}stop/": act(Action.OPERATE),
    f"{S}decide/": act(
        Action.DECIDE,
        409,
        tool_call_id="call_0",
        decision="deny",
        arguments_sha256=DIGEST,
    ),
    f"{S}mode/": act(Action.OPERATE, approval_mode="always-ask"),
    f"{S}draft/": act(Action.OPERATE, text="x"),
    f"{S}recall/": act(Action.OPERATE, 409, queued_id="99"),
    f"{S}retry/": act(Action.OPERATE),
    f"{S}compact/": act(Action.OPERATE, 409),
    f"{S}kill/": act(Action.OPERATE, process_id="proc-00000000"),
    f"{S}input/": act(Action.OPERATE, 409, process_id="proc-00000000", chars="x"),
    f"{S}rename/": act(Action.OPERATE, title="x"),
    f"{S}archive/": act(Action.OPERATE, archived="no"),
    # The API
    f"{A}projects/<project>/sessions": {
        "GET": Row(action=Action.READ),
        "POST": Row(action=Action.OPERATE, body={"agent": "none"}, answers=(422,)),
    },
    f"{A}projects/<project>/traces": {
        "POST": Row(action=Action.AUDIT, body="", answers=(422,)),
    },
    f"{A}projects/<project>/config": {
        "GET": Row(action=Action.READ),
        "PUT": Row(action=Action.EDIT_CONFIG, body=SAVE, answers=(409,)),
    },
    f"{A}projects/<project>/agents/<agent>/config": {
        "GET": Row(action=Action.READ),
        "PUT": Row(
            action=Action.EDIT_CONFIG,
            body={"yaml": "system_prompt: x", "base_version": 99},
            answers=(409,),
        ),
    },
    AS: {
        "GET": Row(action=Action.READ),
        "PATCH": Row(action=Action.OPERATE, body={"title": "x"}),
        "DELETE": Row(action=Action.OPERATE, answers=(204,), is_destructive=True),
    },
    f"{AS}/tasks": {
        "POST": Row(action=Action.OPERATE, body={"text": " "}, answers=(422,)),
    },
    f"{AS}/interrupt": {"POST": Row(action=Action.OPERATE, answers=(202,))},
    f"{AS}/compact": {"POST": Row(action=Action.OPERATE, answers=(409,))},
    f"{AS}/processes": {"GET": Row(action=Action.READ)},
    f"{AS}/processes/<process_id>": {
        "DELETE": Row(action=Action.OPERATE, answers=(204,)),
    },
    f"{AS}/approvals": {"GET": Row(action=Action.READ)},
    f"{AS}/approvals/<path:tool_call_id>": {
        "POST": Row(
            action=Action.DECIDE,
            body={"decision": "deny", "arguments_sha256": DIGEST},
            answers=(409,),
        ),
    },
    f"{AS}/events": {"GET": Row(action=Action.READ)},
    f"{AS}/stream": {"GET": Row(action=Action.READ)},
    f"{AS}/trace.jsonl": {"GET": Row(action=Action.AUDIT)},
}
# Nothing of a project is in their answers, or only what the caller may see anyway.
OPEN = {
    "",
    "login/",
    "logout/",
    "password/",
    "password/done/",
    "theme/",
    "healthz",
    "readyz",
    "metrics",
    f"{A}openapi.json",
    f"{A}approvals",
}


def routes(patterns: list[Any], prefix: str = "") -> Iterator[str]:
    for pattern in patterns:
        route = prefix + str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            yield from routes(pattern.url_patterns, route)
        elif isinstance(pattern, URLPattern):
            yield route


def all_routes() -> set[str]:
    found = routes(get_resolver().url_patterns)
    # Ninja's own entry is a page without content: it answers 404.
    return {r for r in found if not r.startswith("admin/") and r != A}


def test_every_address_has_a_row() -> None:
    assert all_routes() - OPEN - set(TABLE) == set()


def test_every_row_has_an_address() -> None:
    assert set(TABLE) - all_routes() == set()


class World:
    """A session with a pending call and a command, and people of every role."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self.clients: dict[str, AsyncClient] = {}
        self.session = ""

    async def people(self) -> None:
        for name in [*Role.values, "stranger", "root"]:
            user = await User.objects.acreate(
                username=name, is_superuser=name == "root"
            )
            if name in Role.values:
                await Membership.objects.acreate(
                    project=self.project, user=user, role=name
                )
            self.clients[name] = AsyncClient(raise_request_exception=False)
            await self.clients[name].aforce_login(
                user, "django.contrib.auth.backends.ModelBackend"
            )
        self.clients["anonymous"] = AsyncClient()

    async def renew(self) -> None:
        session = await runtime.create_session(project=self.project, user=None)
        self.session = session.pk
        await sync_to_async(self._furnish)(session)

    def _furnish(self, session: Session) -> None:
        CommandSession.objects.all().delete()
        CommandSession.objects.create(
            process_id="proc-00000000",
            session=session,
            tool_call_id="call_0",
            pid=1,
            start_ticks=1,
            cmd="true",
            cwd="/",
            state="exited",
        )
        ApprovalRequest.objects.create(
            session=session,
            tool_call_id="call_0",
            name="exec_command",
            arguments="{}",
            arguments_sha256="1" * 64,
            asked_because="mode always-ask",
        )

    def address(self, route: str) -> str:
        values = {
            "project": self.project.slug,
            "session": self.session,
            "session_id": self.session,
            "agent": "default_agent",
            "seq": "1",
            "number": "0",
            "image": "99",
            "tool_call_id": "call_0",
            "process_id": "proc-00000000",
        }
        return "/" + re.sub(r"<(?:\w+:)?(\w+)>", lambda m: values[m[1]], route)

    async def status(self, person: str, method: str, route: str, body: Any) -> int:
        more: dict[str, Any] = {}
        if route.startswith(A) and method != "GET":
            more = {"data": body or "", "content_type": JSON}
        elif body is not None:
            more = {"data": body}
        call = getattr(self.clients[person], method.lower())
        response = await call(self.address(route), **more)
        response.close()
        return response.status_code


@pytest.fixture
async def world(transactional_db, project):
    await runtime.start_supervisor()
    world = World(project)
    await world.people()
    await world.renew()
    yield world
    await runtime.stop_supervisor()


def expected(route: str, row: Row) -> dict[str, tuple[int, ...]]:
    """Return what each person must be answered."""
    answers: dict[str, tuple[int, ...]] = {
        role: row.answers if role in ALLOWED[row.action] else (403,)
        for role in Role.values
    }
    login = (401,) if route.startswith(A) else (302, 303)
    return answers | {"root": row.answers, "stranger": (404,), "anonymous": login}


@pytest.mark.parametrize("kind", ["pages", "calls"])
async def test_address_lets_in_whom_the_role_table_lets(
    world: World, kind: str
) -> None:
    wrong = []
    for route, rows in TABLE.items():
        if route.startswith(A) != (kind == "calls"):
            continue
        for method, row in rows.items():
            await world.renew()
            for person, answers in expected(route, row).items():
                status = await world.status(person, method, route, row.body)
                if status not in answers:
                    wrong.append(f"{method} {route} as {person}: {status}")
                if row.is_destructive:
                    await world.renew()

    assert wrong == []


async def test_address_answers_to_no_other_method(world: World) -> None:
    answered = []
    for route, rows in TABLE.items():
        for method in METHODS:
            if method not in rows:
                status = await world.status("root", method, route, None)
                if status != 405:
                    answered.append(f"{method} {route}: {status}")

    assert answered == []


@pytest.mark.parametrize("pattern", websocket_urlpatterns, ids=str)
async def test_socket_is_open_to_members_only(world: World, pattern: Any) -> None:
    path = world.address(str(pattern.pattern))
    site = URLRouter(websocket_urlpatterns)
    people: list[User | AnonymousUser] = [user async for user in User.objects.all()]

    refused = set()
    for user in [*people, AnonymousUser()]:
        socket = WebsocketCommunicator(site, path)
        socket.scope["user"] = user
        await socket.connect()
        if not await socket.receive_nothing(timeout=0.1, interval=0.02):
            output = await socket.receive_output()
            if output == {"type": "websocket.close", "code": 4404}:
                refused.add(user.get_username())
        await socket.disconnect()

    assert refused == {"stranger", ""}
