"""One number for what a session cost: in the chat, the record, the admin, the API."""

from __future__ import annotations

import re

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User

from sessions_app import runtime
from sessions_app.runtime import configs
from tests.fakes import Answer, Call, Say, ScriptedServer
from tests.sessions_app.views.waiting import until

pytestmark = pytest.mark.django_db(transaction=True)

DOCUMENT = """\
default_agent: default_agent
default_model: local/paid
models:
  - provider: local
    model_id: paid
    base_url: {url}
    price: {{input: 2, output: 10, cache_read: 0.5}}
"""
# 100 tokens of input, 60 of them cached, 20 of output: per request.
EACH = (40 * 2 + 60 * 0.5 + 20 * 10) / 1_000_000


async def test_cost_is_the_same_wherever_it_is_shown(
    supervisor, client, log_in, project, project_admin
):
    script = [
        Answer(Call("run_subagent", {"prompt": "work"})),
        Answer(Say("child")),
        Answer(Say("done")),
    ]
    with ScriptedServer(script) as server:
        text = DOCUMENT.format(url=server.openai_url)
        await sync_to_async(configs.save)(project, text, base_version=1)
        session = await runtime.create_session(
            project=project, user=project_admin, approval_mode="allow-all"
        )
        await runtime.start_task(session.pk, text="go", user=project_admin)
        await until(session)

    told = (await client.get(f"/api/v1/sessions/{session.pk}")).json()
    assert told["cost"] == pytest.approx(3 * EACH)
    assert told["usage"] == {
        "cache_read": 180,
        "cache_write": 120,
        "output": 60,
        "total": 360,
    }
    root = await log_in(await sync_to_async(_superuser)())
    place = f"/p/default/s/{session.pk}/"
    admin = f"/admin/sessions_app/session/{session.pk}/change/"
    for asking, page in ((client, place), (client, f"{place}trace/"), (root, admin)):
        answer = await asking.get(page)
        assert answer.status_code == 200
        assert re.search(r"\$0\.0009\b", answer.content.decode()), page


def _superuser() -> User:
    return User.objects.create_superuser("root", password="penguin-pass")


async def test_model_without_a_price_shows_no_cost(session, client, project_admin):
    await runtime.start_task(session.pk, text="say hi", user=project_admin)
    await until(session)

    told = (await client.get(f"/api/v1/sessions/{session.pk}")).json()
    page = (await client.get(f"/p/default/s/{session.pk}/")).content.decode()

    assert told["cost"] is None and told["usage"]["total"] > 0
    assert "<dt>Tokens</dt>" in page and "<dt>Cost</dt>" not in page
