"""Stale tokens and missing pages: nothing is lost, and the way on is shown."""

from __future__ import annotations

import json

import pytest

from tests.sessions_app.views.waiting import address

pytestmark = pytest.mark.django_db(transaction=True)
STALE = {"csrfmiddlewaretoken": "x" * 64}


@pytest.fixture
async def strict_client(log_in, project_admin):
    return await log_in(project_admin, enforce_csrf_checks=True)


async def test_stale_token_keeps_the_text_and_a_second_press_works(
    session, strict_client
):
    send = address(session, "send/")

    stale = await strict_client.post(send, STALE | {"text": "long <work>"})

    page = stale.content.decode()
    assert stale.status_code == 403
    assert "long &lt;work&gt;</textarea>" in page
    assert f'action="{send}"' in page
    token = page.split('name="csrfmiddlewaretoken" value="')[1].split('"')[0]
    again = await strict_client.post(
        send, {"csrfmiddlewaretoken": token, "text": "say hi"}
    )
    assert again.status_code == 303


async def test_stale_token_of_an_open_page_is_renewed(session, strict_client):
    response = await strict_client.post(
        address(session, "send/"), {"text": "x"}, headers={"HX-Request": "true"}
    )

    renewed = json.loads(response["HX-Trigger"])["token-renewed"]["token"]
    assert response.status_code == 403
    assert response.content.decode().startswith('<div class="notice"')
    assert len(renewed) == 64


async def test_stale_decision_is_not_offered_again(session, strict_client):
    response = await strict_client.post(
        address(session, "decide/"), STALE | {"decision": "allow", "reason": "ok"}
    )

    page = response.content.decode()
    assert response.status_code == 403
    assert 'name="decision"' not in page


async def test_request_of_another_site_gets_no_form(session, strict_client):
    response = await strict_client.post(
        address(session, "send/"),
        {"text": "planted"},
        headers={"Origin": "https://evil.example"},
    )

    assert response.status_code == 403
    assert "planted" not in response.content.decode()


async def test_missing_page_says_so_in_the_products_words(client, project):
    response = await client.get("/p/default/nowhere/")

    page = response.content.decode()
    assert response.status_code == 404
    assert "Not found" in page
    assert "you may not see it" in page


async def test_missing_thing_is_a_notice_in_an_open_page(session, client):
    response = await client.post(
        address(session, "decide/"),
        {"tool_call_id": "nope", "decision": "allow"},
        headers={"HX-Request": "true"},
    )

    assert response.status_code == 404
    assert "<html" not in response.content.decode()
