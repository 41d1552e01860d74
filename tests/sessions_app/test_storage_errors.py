"""A full disk is no fault of the program: people are told, and keep what they typed."""

from __future__ import annotations

import errno
import shutil
import sqlite3
from types import SimpleNamespace

import pytest
from asgiref.sync import sync_to_async
from django.db import OperationalError
from django.test import AsyncClient

from sessions_app import runtime, tokens
from sessions_app.engine.decision import RecordError
from sessions_app.runtime import actions, sessions
from traces_app.writer import TraceWriteError

pytestmark = pytest.mark.django_db(transaction=True)


def full_database() -> OperationalError:
    cause = sqlite3.OperationalError("database or disk is full")
    cause.sqlite_errorcode = sqlite3.SQLITE_FULL
    error = OperationalError("database or disk is full")
    error.__cause__ = cause
    return error


FULL = [
    full_database(),
    OSError(errno.ENOSPC, "No space left on device"),
    RecordError("The record could not be written: full."),
    TraceWriteError("The record could not be written: full."),
]


@pytest.fixture
async def supervisor(transactional_db, project):
    yield await runtime.start_supervisor()
    await runtime.stop_supervisor()


@pytest.fixture
def break_with(monkeypatch):
    """Let whatever makes a session or takes a message fail."""

    def set_error(error: Exception) -> None:
        def fail(*_, **__):
            raise error

        monkeypatch.setattr(sessions, "create", fail)
        monkeypatch.setattr(sessions, "enqueue", fail)

    return set_error


@pytest.mark.parametrize("error", FULL)
async def test_the_api_says_that_nothing_can_be_stored(
    supervisor, operator, break_with, error
):
    break_with(error)
    _, token = await sync_to_async(tokens.issue)(operator)

    response = await AsyncClient().post(
        "/api/v1/projects/default/sessions",
        "{}",
        content_type="application/json",
        headers={"Authorization": f"Bearer {token}"},
    )

    answer = response.json()["error"]
    assert (response.status_code, answer["code"]) == (503, "not_stored")
    assert "full" in answer["message"] or "space" in answer["message"]


async def test_another_failure_of_the_database_stays_a_fault(
    supervisor, operator, break_with
):
    break_with(ValueError("a fault"))
    _, token = await sync_to_async(tokens.issue)(operator)

    response = await AsyncClient(raise_request_exception=False).post(
        "/api/v1/projects/default/sessions",
        "{}",
        content_type="application/json",
        headers={"Authorization": f"Bearer {token}"},
    )

    assert response.status_code == 500


@pytest.mark.parametrize("error", FULL)
async def test_a_page_says_so_and_keeps_the_message(
    supervisor, project, operator, break_with, error
):
    session = await actions.create_session(project=project, user=operator)
    client = AsyncClient()
    await sync_to_async(client.force_login)(operator)
    break_with(error)
    address = f"/p/default/s/{session.pk}/send/"

    page = await client.post(address, {"text": "a long thought"})
    notice = await client.post(address, {"text": "x"}, headers={"HX-Request": "true"})

    assert (page.status_code, notice.status_code) == (503, 503)
    assert "a long thought" in page.text
    assert "try again" in page.text and "try again" in notice.text
    assert "<html" not in notice.text


async def test_a_server_with_a_full_disk_is_not_ready(async_client, monkeypatch):
    nearly_full = SimpleNamespace(free=2 * 1024**2)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: nearly_full)

    response = await async_client.get("/readyz")

    assert response.status_code == 503
    assert response.json()["checks"]["data_folder"] == "only 2 MiB are free"
