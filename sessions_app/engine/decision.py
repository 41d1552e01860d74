"""What the loop asks of its surroundings: a decision per call, a record per message."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal, Protocol

from traces_app.omnimessage import OmniMessage
from traces_app.omnimessage.payloads import ApprovalDecision


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The one answer to a tool call.

    `event` is the complete approval_decision when the approver made it himself; a
    plain "allow"/"deny" of an SDK caller is turned into one by the loop.
    `arguments` replaces the model's argument text when a person edited it.
    """

    event: ApprovalDecision
    arguments: str | None = None
    is_recorded: bool = False  # the event already stands in the Trace


# What a caller may inject: the SDK's plain words or the product's full decision.
Approve = Callable[[OmniMessage], Awaitable[Literal["allow", "deny"] | Decision]]


class Recorder(Protocol):
    """Keeps messages before anything acts on them.

    It is called by several tasks at once; the order of the calls is the order of
    the record, in whatever order they return.
    """

    async def __call__(self, *messages: OmniMessage) -> None:
        """Store all messages in one transaction, in order, or raise `RecordError`."""
        ...


class RecordError(Exception):
    """The record could not be written; nothing may run without it."""
