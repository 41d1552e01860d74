"""Health, readiness and figures."""

from __future__ import annotations

import pytest
from asgiref.sync import sync_to_async
from django.test import AsyncClient

from sessions_app import tokens
from sessions_app.models import Session
from traces_app.models import Trace

pytestmark = pytest.mark.django_db(transaction=True)


class ClientElsewhere(AsyncClient):
    """Asks from another machine's address."""

    async def request(self, **scope):
        return await super().request(**scope | {"client": ["203.0.113.9", 1]})


async def test_server_that_answers_is_healthy(async_client: AsyncClient) -> None:
    response = await async_client.get("/healthz")

    assert (response.status_code, response.content) == (200, b"ok\n")


async def test_ready_names_every_thing_that_is_there(async_client: AsyncClient) -> None:
    response = await async_client.get("/readyz")

    assert response.status_code == 200
    assert response.json() == {
        "ready": True,
        "checks": {"database": "ok", "migrations": "ok", "data_folder": "ok"},
    }


async def test_server_without_its_data_folder_is_not_ready(
    async_client: AsyncClient, settings, tmp_path
) -> None:
    settings.DATA_DIR = tmp_path / "gone"

    response = await async_client.get("/readyz")

    assert response.status_code == 503
    assert response.json()["checks"]["data_folder"] == "not writable"


async def test_figures_count_sessions_by_status(
    async_client: AsyncClient, project
) -> None:
    trace = await Trace.objects.acreate(session_id="s", project="default")
    agent = await project.agents.aget()
    await Session.objects.acreate(
        id="s", project=project, agent=agent, trace=trace, status="waiting"
    )

    text = (await async_client.get("/metrics")).content.decode()

    assert 'penguin_sessions{status="waiting"} 1.0' in text
    assert "penguin_approvals_pending 0.0" in text
    assert "process_resident_memory_bytes" in text


async def test_figures_are_for_the_machine_itself() -> None:
    response = await ClientElsewhere().get("/metrics")

    assert response.status_code == 403


async def test_caller_behind_a_proxy_is_not_the_machine_itself(
    async_client: AsyncClient,
) -> None:
    headers = {"X-Forwarded-For": "203.0.113.9"}

    assert (await async_client.get("/metrics", headers=headers)).status_code == 403


@pytest.mark.parametrize(("scope", "status"), [("metrics", 200), ("", 403)])
async def test_token_with_the_scope_reads_figures_from_elsewhere(
    viewer, scope, status
) -> None:
    _, text = await sync_to_async(tokens.issue)(viewer, scope=scope)

    response = await ClientElsewhere().get(
        "/metrics", headers={"Authorization": f"Bearer {text}"}
    )

    assert response.status_code == status


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/metrics"])
async def test_only_reading_is_answered(async_client: AsyncClient, path) -> None:
    assert (await async_client.post(path)).status_code == 405
