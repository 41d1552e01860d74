"""The most a session may cost, its subagents included."""

from __future__ import annotations

from asgiref.sync import sync_to_async

from sessions_app.models import Session
from traces_app.figures import usd
from traces_app.spending import spending_of


async def over_budget(session: Session, budget_usd: float | None) -> str | None:
    """Return why the model must not be asked any more, None while it may be.

    Only what has a price counts. A subagent draws on the budget of its parent.
    """
    if budget_usd is None:
        return None
    spent = await sync_to_async(spending_of)(session.parent_id or session.pk)
    if spent.cost_usd is None or spent.cost_usd < budget_usd:
        return None
    return (
        f"the budget of {usd(budget_usd)} for a session is spent: "
        f"{usd(spent.cost_usd)}, subagents included. Raise it in the project's "
        "document, or begin a new session."
    )
