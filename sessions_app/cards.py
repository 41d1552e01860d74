"""Approval cards: what a person sees of a pending call before deciding.

Drawn from the stored request alone, so that what is shown is what will run.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from django.urls import reverse

from sessions_app import runtime
from sessions_app.child_view import child_name
from sessions_app.models import ApprovalRequest, CommandSession, Session
from traces_app.arguments import Arguments, Line, read_arguments, spell
from traces_app.call_view import call_key
from traces_app.figures import count

_PERMISSIONS = {"r": "read-only", "rw": "read-write"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """One pending call; `key` makes the ids of its elements unique on any page."""

    template: ClassVar[str] = "sessions_app/partials/approval_card.html"
    key: str
    tool_call_id: str
    attempt: int
    name: str
    spelled_name: Line
    permission: str
    arguments: Arguments
    process: str  # of a call that types into a command: which one
    workdir: Line | None
    agent: str
    why: str
    requested_at: datetime
    expires_at: datetime | None  # then it is denied; None: it waits for ever
    digest: str
    position: int
    total: int
    action: str
    page: str
    is_fresh: bool  # it appears in an open page

    @property
    def short_digest(self) -> str:
        """Return the beginning of the digest, for people."""
        return f"{self.digest[:4]} {self.digest[4:8]}"

    @property
    def has_keys(self) -> bool:
        """Return whether single keys may decide: not where something is hidden."""
        return not self.arguments.escapes and not self.arguments.problem

    @property
    def warning(self) -> str:
        """Return the one thing to be careful about, if there is one."""
        if self.arguments.problem:
            return f"{self.arguments.problem} Once decided, it fails."
        if escapes := self.arguments.escapes:
            hidden = count(escapes, "hidden character is", "hidden characters are")
            return (
                f"{hidden} shown as an escape. Read carefully: "
                "the keys are off for this call."
            )
        return ""


def card_key(request: ApprovalRequest) -> str:
    """Return the id of a request as part of an element's id."""
    session = request.session_id[-8:]
    return f"{call_key(request.tool_call_id)}-{request.attempt}-{session}"


def card_of(
    request: ApprovalRequest,
    session: Session,
    *,
    place: tuple[int, int] = (1, 1),
    is_fresh: bool = False,
) -> Card:
    """Return the card of a request; `place` is its position and the number of all."""
    slug = session.project.slug
    return Card(
        key=card_key(request),
        tool_call_id=request.tool_call_id,
        attempt=request.attempt,
        name=request.name,
        spelled_name=spell(request.name),
        permission=_PERMISSIONS.get(request.permission, "unknown tool"),
        arguments=read_arguments(request.name, request.arguments),
        process=_process(request),
        workdir=spell(request.workdir) if request.workdir else None,
        agent=_agent(request, session),
        why=request.asked_because,
        requested_at=request.requested_at,
        expires_at=runtime.expires_at(request),
        digest=request.arguments_sha256,
        position=place[0],
        total=place[1],
        action=reverse("decide", args=[slug, request.session_id]),
        page=reverse("chat", args=[slug, session.pk]),
        is_fresh=is_fresh,
    )


def cards_of(
    requests: Sequence[ApprovalRequest], session: Session, *, is_fresh: bool = False
) -> list[Card]:
    """Return the cards of all pending requests, oldest first."""
    return [
        card_of(request, session, place=(at, len(requests)), is_fresh=is_fresh)
        for at, request in enumerate(requests, start=1)
    ]


def _agent(request: ApprovalRequest, session: Session) -> str:
    if not request.origin:
        return session.agent.name
    return " › ".join(["root", *(_child_name(str(part)) for part in request.origin)])


def _child_name(session_id: str) -> str:
    children = Session.objects.select_related("agent", "subagent")
    child = children.filter(pk=session_id).first()
    return child_name(child) if child else session_id


def _process(request: ApprovalRequest) -> str:
    """Name the command that input would go to: the arguments only hold its id."""
    if request.name != "input_command":
        return ""
    try:
        process_id = json.loads(request.arguments)["process_id"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return ""
    row = CommandSession.objects.filter(
        session_id=request.session_id, process_id=str(process_id)[:20]
    ).first()
    if row is None:
        return "into a command this session does not know"
    return "into: " + "".join(span.text for span in spell(row.cmd.replace("\n", " ⏎ ")))
