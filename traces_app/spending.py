"""What a session has used so far: tokens and money, its subagents' counted once.

The one source of these figures for chat, viewer, admin and API. Each Trace holds its
own running totals; a subagent's requests are in its own Trace and in no other.
"""

from __future__ import annotations

from dataclasses import dataclass

from traces_app import reader
from traces_app.models import Trace
from traces_app.omnimessage.codec import CodecError
from traces_app.omnimessage.money import add_usd
from traces_app.omnimessage.payloads import TokenUsage, Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class Spending:
    """Totals; no cost where no model had a price."""

    usage: Usage
    cost_usd: float | None = None


def spending_of(session_id: str) -> Spending:
    """Return the totals of a session and of the subagents it has."""
    totals = Spending(usage=Usage())
    family = Trace.objects.filter(session_id=session_id)
    family |= Trace.objects.filter(parent_session_id=session_id)
    for trace_id in family.values_list("pk", flat=True):
        if (counted := _last_count(trace_id)) is not None:
            totals = Spending(
                usage=totals.usage + counted.session,
                cost_usd=add_usd(totals.cost_usd, counted.session_usd),
            )
    return totals


def _last_count(trace_id: int) -> TokenUsage | None:
    newest = reader.last_event(trace_id, "token_usage")
    try:
        payload = newest.message.payload if newest else None
    except CodecError:
        return None  # an imported or damaged event
    return payload if isinstance(payload, TokenUsage) else None
