"""What tests of subagents need: lines for the built-in model, and looks at children."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from asgiref.sync import sync_to_async

from sessions_app.models import ApprovalRequest, Session
from traces_app import reader
from traces_app.omnimessage import OmniMessage


def delegate(prompt: str, **more: Any) -> str:
    """Return the line that has the built-in model start a subagent."""
    return f"call run_subagent {json.dumps({'prompt': prompt, **more})}"


def follow(subagent_id: str, **more: Any) -> str:
    """Return the line that has it look after one."""
    return f"call input_subagent {json.dumps({'subagent_id': subagent_id, **more})}"


WAITS = "$ while [ ! -e go ]; do sleep 0.02; done"  # a command that ends with `let_go`


async def let_go(chat) -> None:
    """Let what `WAITS` end."""
    await sync_to_async((Path((await chat.row()).workspace) / "go").touch)()


async def cards_of_children(chat, *prompts: str, **more: Any) -> list[ApprovalRequest]:
    """Allow the delegations; wait until each child asks about a call of its own."""
    await chat.send("\n".join(delegate(prompt, **more) for prompt in prompts))
    for own in await chat.cards(len(prompts)):
        await chat.decide(own, "allow")

    async def look() -> list[ApprovalRequest] | None:
        rows = ApprovalRequest.objects.filter(session__parent_id=chat.id, decision=None)
        found = [row async for row in rows.select_related("session").order_by("id")]
        return found if len(found) == len(prompts) else None

    return await chat.until(look)


async def card_of_child(
    chat, prompt: str = "$ echo hi", **more: Any
) -> ApprovalRequest:
    """Do the same with one child."""
    (card,) = await cards_of_children(chat, prompt, **more)
    return card


async def children_of(chat) -> list[Session]:
    rows = Session.objects.filter(parent_id=chat.id).order_by("subagent__number")
    return [row async for row in rows.select_related("subagent", "agent", "trace")]


async def child_of(chat) -> Session:
    """Wait for the first child."""

    async def look() -> Session | None:
        found = await children_of(chat)
        return found[0] if found else None

    return await chat.until(look)


async def record_of(session: Session, *kinds: str) -> list[OmniMessage]:
    """Return what is on record of a child, of the kinds only when some are given."""

    def read() -> list[OmniMessage]:
        events = reader.iter_events(session.trace_id)
        return [e.message for e in events if not kinds or e.kind in kinds]

    return await sync_to_async(read)()


async def output_of(chat):
    """Return the newest output on record."""
    return (await chat.events("tool_call_output"))[-1]


async def child_is(chat, status: str) -> None:
    """Wait until the first child reads so."""

    async def look() -> bool:
        return (await child_of(chat)).status == status

    await chat.until(look)
