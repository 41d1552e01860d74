"""A project may set how long a call waits; then it is denied, never allowed."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest
from asgiref.sync import sync_to_async

from sessions_app import runtime
from sessions_app.cards import card_of
from sessions_app.models import ApprovalRequest
from sessions_app.runtime import configs, expiry

pytestmark = pytest.mark.django_db(transaction=True)

NOBODY = (
    "Tool call denied by user.\n"
    "Reason: nobody decided in time; this is not a technical fault, "
    "do not try another way."
)


@pytest.fixture
def let_expire(project):
    """Save the project's document with a time for its approval requests."""

    async def save(seconds: int) -> None:
        text, number = await sync_to_async(configs.document_text)(project)
        assert "mode: always-ask" in text
        text = text.replace(
            "mode: always-ask", f"mode: always-ask\n  expiry_s: {seconds}"
        )
        await sync_to_async(configs.save)(project, text, base_version=number)

    return save


async def age(card, seconds: int) -> None:
    """Let the request look as if it had been made earlier."""
    rows = ApprovalRequest.objects.filter(pk=card.pk)
    await rows.aupdate(requested_at=card.requested_at - timedelta(seconds=seconds))


async def test_call_nobody_decides_is_denied_and_the_turn_goes_on(
    make_chat, let_expire
):
    await let_expire(1)
    chat = await make_chat()

    await chat.send("$ touch made\nthen\nsay next")
    await chat.idle()

    assert await chat.outputs() == [NOBODY]
    (decided,) = await chat.events("approval_decision")
    assert (decided.decision, decided.source, decided.via) == ("deny", "expiry", "auto")
    assert decided.decided_by is None
    assert [p.text for p in await chat.events("text")][-1] == "next"
    with pytest.raises(runtime.Refusal) as caught:
        await chat.decide(await ApprovalRequest.objects.aget(), "allow")
    assert caught.value.code == "already_decided"


async def test_call_expires_in_a_session_that_nobody_runs(make_chat, let_expire):
    await let_expire(3600)
    chat = await make_chat()
    await chat.send("$ true")
    (card,) = await chat.cards()
    await runtime.stop_supervisor()
    await age(card, 3601)

    await runtime.start_supervisor()
    await chat.idle()

    assert await chat.outputs() == [NOBODY]


async def test_call_waits_for_ever_unless_a_project_says_otherwise(make_chat):
    chat = await make_chat()
    await chat.send("$ true")
    (card,) = await chat.cards()
    await age(card, 10**7)

    assert await sync_to_async(expiry.deny_overdue)() == set()

    await asyncio.sleep(0)
    assert len(await chat.cards()) == 1


async def test_decision_in_time_stands(make_chat, let_expire):
    await let_expire(3600)
    chat = await make_chat()
    await chat.send("$ echo hi")
    (card,) = await chat.cards()
    await chat.decide(card, "allow")
    await age(card, 3601)

    assert await sync_to_async(expiry.deny_overdue)() == set()

    await chat.idle()
    assert await chat.outputs() == ["hi\n"]


async def test_card_tells_when_it_will_be_denied(make_chat, let_expire):
    chat = await make_chat()
    await chat.send("$ true")
    (row,) = await chat.cards()

    assert (await sync_to_async(_card)(row)).expires_at is None
    await let_expire(600)
    card = await sync_to_async(_card)(row)

    assert card.expires_at == row.requested_at + timedelta(seconds=600)


def _card(row):
    row = ApprovalRequest.objects.get(pk=row.pk)
    return card_of(row, row.session)
