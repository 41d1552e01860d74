"""Subagents on pages that are read without a script."""

from __future__ import annotations

import asyncio
import json
import re

import pytest

from sessions_app import runtime
from sessions_app.models import Session
from tests.sessions_app.views.waiting import cards, until

pytestmark = pytest.mark.django_db(transaction=True)


def delegate(prompt: str, **more) -> str:
    return f"call run_subagent {json.dumps({'prompt': prompt, **more})}"


async def child_of(session: Session) -> Session:
    return await Session.objects.select_related("subagent").aget(parent=session)


async def page_of(client, session: Session) -> str:
    response = await client.get(f"/p/default/s/{session.pk}/")
    assert response.status_code == 200
    return response.content.decode()


@pytest.fixture
async def done(make_session, project_admin) -> Session:
    """A session whose subagent has ended."""
    session = await make_session("allow-all")
    prompt = "say I will <b>look</b>.\n$ echo hi\nthen\nsay found it"
    await runtime.start_task(session.pk, text=delegate(prompt), user=project_admin)
    await until(session)
    return session


async def test_a_subagent_has_a_card_at_the_call_that_made_it(client, done):
    child = await child_of(done)

    html = await page_of(client, done)

    nested = html[html.index('class="call-nested"') :]
    assert f'data-session="{child.pk}"' in nested
    assert "default_agent #1" in nested
    steps = nested[nested.index("child-steps") : nested.index("</ol>")]
    told = [steps.index(words) for words in ("look", "echo hi", "found it")]
    assert told == sorted(told)
    assert "<b>look</b>" not in steps
    assert f'href="/p/default/s/{child.pk}/"' in nested


async def test_the_aside_lists_subagents(client, done):
    html = await page_of(client, done)

    aside = html[html.index('id="children"') :]
    aside = aside[: aside.index("</ul>")]
    assert "default_agent #1" in aside and "idle" in aside
    assert "Stop default_agent" not in aside


async def test_the_page_of_a_subagent_is_to_be_read(client, done):
    child = await child_of(done)

    html = await page_of(client, child)

    assert 'id="message"' not in html
    assert "takes its tasks from" in html
    assert f'href="/p/default/s/{done.pk}/"' in html
    assert 'data-person="default_agent"' in html  # who gave it the task


async def test_a_working_subagent_can_be_stopped_alone(
    client, make_session, project_admin
):
    session = await make_session("allow-all")
    text = delegate("sleep 60", yield_time_ms=250)
    await runtime.start_task(session.pk, text=text, user=project_admin)
    await until(session)
    child = await child_of(session)
    html = await page_of(client, session)
    assert "Stop default_agent #1" in html

    (action,) = re.findall(rf'action="(/p/default/s/{child.pk}/stop/)"', html)
    response = await client.post(action)

    assert response.status_code == 303
    await until(child)


async def test_the_list_shows_what_a_subagent_asks_at_its_parent(
    client, make_session, project_admin
):
    session = await make_session(title="Parent")
    text = delegate("$ rm everything")
    await runtime.start_task(session.pk, text=text, user=project_admin)
    (own,) = await cards(session)
    await runtime.decide(
        session.pk, own.tool_call_id, decision="allow", user=project_admin, via="button"
    )
    child = await until(await first_child(session), "waiting")

    html = (await client.get("/p/default/sessions/")).content.decode()

    assert html.count('<li class="session"') == 1
    assert "rm everything" in html
    assert child.pk not in html


async def first_child(session: Session) -> Session:
    async with asyncio.timeout(20):
        while True:
            child = await Session.objects.filter(parent=session).afirst()
            if child is not None:
                return child
            await asyncio.sleep(0.01)
