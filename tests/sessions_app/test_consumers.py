"""Sockets tell members the news, answer no stranger, and end with the membership."""

from __future__ import annotations

import asyncio
import json

import pytest
from asgiref.sync import sync_to_async
from channels.routing import URLRouter
from channels.testing import WebsocketCommunicator
from django.contrib.auth.models import AnonymousUser

from sessions_app import runtime
from sessions_app.models import Membership
from sessions_app.routing import websocket_urlpatterns

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
async def supervisor(transactional_db, project):
    yield await runtime.start_supervisor()
    await runtime.stop_supervisor()


@pytest.fixture
async def session(supervisor, project, project_admin):
    return await runtime.create_session(
        project=project, user=project_admin, approval_mode="allow-all"
    )


def socket(path: str, user) -> WebsocketCommunicator:
    communicator = WebsocketCommunicator(URLRouter(websocket_urlpatterns), path)
    communicator.scope["user"] = user
    return communicator


async def closed_code(communicator) -> int:
    async with asyncio.timeout(15):
        while (output := await communicator.receive_output(15))["type"] != (
            "websocket.close"
        ):
            pass
    return output["code"]


async def test_a_member_is_told_of_events_text_and_state(session, operator):
    page = socket(f"/ws/sessions/{session.pk}/", operator)
    await page.connect()
    await page.send_json_to({"have": {}, "seq": 0})

    await runtime.start_task(
        session.pk, text="$ echo hi; sleep 0.5\nsay there", user=operator
    )

    frames = []
    async with asyncio.timeout(15):
        while not any('data-state="idle"' in f for f in frames[5:]):
            frames.append(await page.receive_from(15))
    await page.disconnect()
    deltas = [json.loads(f) for f in frames if f.startswith("{")]
    html = "".join(f for f in frames if f.startswith("<"))
    assert "hi\n" in "".join(d["text"] for d in deltas if d["type"] == "delta")
    assert 'id="trace-head"' in html and "there" in html


@pytest.mark.parametrize("who", ["anonymous", "stranger"])
async def test_who_may_not_read_the_session_is_turned_away(session, stranger, who):
    user = AnonymousUser() if who == "anonymous" else stranger
    page = socket(f"/ws/sessions/{session.pk}/", user)
    await page.connect()

    assert await closed_code(page) == 4404


async def test_an_unknown_session_looks_like_a_foreign_one(supervisor, operator):
    page = socket("/ws/sessions/session-nowhere/", operator)
    await page.connect()

    assert await closed_code(page) == 4404


async def test_the_socket_ends_with_the_membership(session, operator):
    page = socket(f"/ws/sessions/{session.pk}/", operator)
    await page.connect()
    await page.send_json_to({"have": {}, "seq": 0})
    await page.receive_from(15)

    await Membership.objects.filter(user=operator).adelete()

    assert await closed_code(page) == 4404


@pytest.mark.parametrize(
    "words",
    [
        "no json",
        '{"have": 5}',
        '{"have": {}, "seq": "x"}',
        '{"have": {}, "seq": 1e400}',
        "[]",
        "[" * 50_000,
        '{"ack": {}}',
    ],
)
async def test_nonsense_closes_the_socket_and_nothing_else(session, operator, words):
    page = socket(f"/ws/sessions/{session.pk}/", operator)
    await page.connect()
    if "ack" in words:
        await page.send_json_to({"have": {}, "seq": 0})
    await page.send_to(text_data=words)

    assert await closed_code(page) == 4400


async def test_a_project_socket_tells_members_how_many_calls_wait(
    session, project, operator
):
    page = socket(f"/ws/projects/{project.slug}/", operator)
    await page.connect()
    before = await page.receive_from(15)
    await runtime.set_mode(session.pk, "always-ask", user=operator)

    await runtime.start_task(session.pk, text="$ echo hi", user=operator)

    assert await page.receive_from(15) != before
    await page.disconnect()


async def test_a_project_socket_turns_strangers_away(supervisor, project, stranger):
    page = socket(f"/ws/projects/{project.slug}/", stranger)
    await page.connect()

    assert await closed_code(page) == 4404


async def test_an_account_that_is_switched_off_hears_nothing_more(session, operator):
    page = socket(f"/ws/sessions/{session.pk}/", operator)
    await page.connect()
    await page.send_json_to({"have": {}, "seq": 0})
    await page.receive_from(15)

    operator.is_active = False
    await sync_to_async(operator.save)()

    assert await closed_code(page) == 4404
