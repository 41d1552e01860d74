"""Who may call: tokens, cookies with CSRF tokens, projects of others."""

from __future__ import annotations

import pytest
from asgiref.sync import sync_to_async
from django.test import AsyncClient

from sessions_app import tokens
from sessions_app.models import Project

pytestmark = pytest.mark.django_db(transaction=True)

SESSIONS = "/api/v1/projects/default/sessions"


async def test_caller_without_credentials_gets_401(project, error) -> None:
    response = await AsyncClient().get(SESSIONS)

    assert response.status_code == 401
    assert error(response)["code"] == "unauthorized"
    assert response["WWW-Authenticate"] == "Bearer"


@pytest.mark.parametrize(
    "header", ["Bearer penguin_wrong", "Bearer", "Basic b3NrYXI6eA==", "penguin_x"]
)
async def test_unknown_credentials_get_401(project, error, header) -> None:
    response = await AsyncClient().get(SESSIONS, headers={"Authorization": header})

    assert response.status_code == 401
    error(response)


async def test_token_reads_what_its_user_may_see(caller, viewer) -> None:
    vera = await caller(viewer)

    assert await vera.get("projects/default/sessions") == {"sessions": [], "next": None}


async def test_revoked_token_gets_401(caller, viewer) -> None:
    vera = await caller(viewer)
    await viewer.api_tokens.aupdate(revoked_at="2024-01-01T00:00:00Z")

    assert (await vera("GET", "approvals")).status_code == 401


async def test_wrong_token_is_not_made_good_by_a_cookie(project, viewer) -> None:
    client = AsyncClient()
    await client.aforce_login(viewer)

    response = await client.get(SESSIONS, headers={"Authorization": "Bearer nope"})

    assert response.status_code == 401


async def test_token_of_one_project_sees_no_other(caller, project, admin_user) -> None:
    await Project.objects.acreate(slug="beta")
    root = await caller(admin_user, project)

    assert (await root("GET", "projects/default/sessions")).status_code == 200
    assert (await root("GET", "projects/beta/sessions")).status_code == 404


async def test_metrics_token_is_good_for_nothing_else(project, viewer, error) -> None:
    _, text = await sync_to_async(tokens.issue)(viewer, scope="metrics")

    response = await AsyncClient().get(
        SESSIONS, headers={"Authorization": f"Bearer {text}"}
    )

    assert response.status_code == 403
    error(response)


async def test_stranger_sees_no_project(caller, project, stranger, error) -> None:
    stan = await caller(stranger)

    for path in ("projects/default/sessions", "projects/none/sessions"):
        response = await stan("GET", path)
        assert response.status_code == 404
        error(response)
    assert await stan.get("approvals") == []


async def test_role_that_does_not_allow_it_gets_403(caller, viewer, error) -> None:
    vera = await caller(viewer)

    response = await vera("POST", "projects/default/sessions", {})

    assert response.status_code == 403
    assert error(response)["code"] == "forbidden"


async def test_cookie_reads(project, viewer) -> None:
    client = AsyncClient(enforce_csrf_checks=True)
    await client.aforce_login(viewer)

    assert (await client.get(SESSIONS)).status_code == 200


@pytest.mark.parametrize("content_type", ["application/json", "text/plain"])
async def test_cookie_without_csrf_token_writes_nothing(
    project, operator, error, content_type
) -> None:
    client = AsyncClient(enforce_csrf_checks=True)
    await client.aforce_login(operator)

    response = await client.post(SESSIONS, "{}", content_type=content_type)

    assert response.status_code == 403
    assert error(response)["code"] == "csrf"
    assert not await project.sessions.aexists()


async def test_cookie_with_csrf_token_writes(supervisor, operator, project) -> None:
    client = AsyncClient(enforce_csrf_checks=True)
    await client.aforce_login(operator)
    token = "a" * 32
    client.cookies["csrftoken"] = token

    response = await client.post(
        SESSIONS,
        "{}",
        content_type="application/json",
        headers={"X-CSRFToken": token},
    )

    assert response.status_code == 201


async def test_csrf_token_in_a_form_is_no_header(project, operator, error) -> None:
    client = AsyncClient(enforce_csrf_checks=True)
    await client.aforce_login(operator)
    token = "a" * 32
    client.cookies["csrftoken"] = token

    response = await client.post(SESSIONS, {"csrfmiddlewaretoken": token})

    assert response.status_code == 403
    error(response)


async def test_token_needs_no_csrf_token(supervisor, caller, operator) -> None:
    oskar = await caller(operator)
    oskar.client = AsyncClient(enforce_csrf_checks=True)

    await oskar.session()
