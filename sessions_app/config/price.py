"""What a request costs: the one place where tokens become money."""

from __future__ import annotations

from collections.abc import Mapping

from traces_app.omnimessage.money import DIGITS
from traces_app.omnimessage.payloads import Usage

TOKENS = 1_000_000  # a price is for this many


def cost_usd(usage: Usage, price: Mapping[str, float]) -> float | None:
    """Return US dollars; None where the model has no price.

    `usage.cache_write` holds all input that no cache held; `usage.input` is the part
    of it that was not written to one either. A cache without a price of its own costs
    what input costs.
    """
    if not price:
        return None
    plain = price.get("input", 0)
    written = usage.cache_write - usage.input
    dollars = (
        usage.input * plain
        + written * price.get("cache_write", plain)
        + usage.cache_read * price.get("cache_read", plain)
        + usage.output * price.get("output", 0)
    )
    return round(dollars / TOKENS, DIGITS)
