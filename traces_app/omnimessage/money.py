"""Sums of US dollars, of which some may be unknown."""

from __future__ import annotations

DIGITS = 10  # sums of many small amounts stay free of rounding noise


def add_usd(one: float | None, other: float | None) -> float | None:
    """Return the sum of what is known; None where nothing is."""
    if one is None or other is None:
        return one if other is None else other
    return round(one + other, DIGITS)
