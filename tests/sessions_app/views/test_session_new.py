"""A new session: the form, what it refuses, and who may ask for what."""

from __future__ import annotations

import pytest

from sessions_app.models import Session

pytestmark = pytest.mark.django_db(transaction=True)
NEW = "/p/default/sessions/new/"
WISH = {
    "agent": "default_agent",
    "model": "demo/demo",
    "approval_mode": "always-ask",
    "thinking_level": "",
    "title": "",
    "workspace": "",
}


async def test_form_offers_what_the_project_has(supervisor, client):
    response = await client.get(NEW)

    page = response.content.decode()
    assert response.status_code == 200
    for option in ("default_agent", "demo/demo-text", "read-only", "xhigh"):
        assert f'<option value="{option}"' in page
    assert '<option value="always-ask" selected>' in page


async def test_created_session_is_shown(supervisor, client, project_admin):
    response = await client.post(
        NEW, WISH | {"title": "First", "model": "demo/demo-text"}
    )

    session = await Session.objects.aget()
    assert response.status_code == 303
    assert response["Location"] == f"/p/default/s/{session.pk}/"
    assert (session.title, session.model_id) == ("First", "demo-text")
    assert session.created_by_id == project_admin.pk


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("workspace", "/etc", "is not below an allowed folder"),
        ("model", "nobody/nothing", "valid choice"),
        ("approval_mode", "yolo", "valid choice"),
        ("agent", "", "required"),
    ],
)
async def test_wish_that_cannot_be_is_said_at_its_field(
    supervisor, client, field, value, words
):
    response = await client.post(NEW, WISH | {"title": "kept", field: value})

    page = response.content.decode()
    assert response.status_code == 422
    assert words in page
    assert 'value="kept"' in page
    assert not await Session.objects.aexists()


async def test_more_permissive_mode_than_the_projects_needs_the_right(
    supervisor, log_in, operator, approver
):
    wish = WISH | {"approval_mode": "allow-all"}

    refused = await (await log_in(operator)).post(NEW, wish)
    allowed = await (await log_in(approver)).post(NEW, wish)

    assert (refused.status_code, allowed.status_code) == (403, 303)


async def test_viewer_cannot_make_one(supervisor, log_in, viewer):
    client = await log_in(viewer)

    assert (await client.get(NEW)).status_code == 403


async def test_project_of_others_does_not_exist(supervisor, client):
    assert (await client.get("/p/other/sessions/new/")).status_code == 404


async def test_form_is_behind_the_login(supervisor, async_client):
    response = await async_client.get(NEW)

    assert response.status_code == 303
    assert response["Location"] == "/login/?next=%2Fp%2Fdefault%2Fsessions%2Fnew%2F"


async def test_other_methods_are_refused(supervisor, client):
    assert (await client.put(NEW)).status_code == 405
