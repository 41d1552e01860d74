"""Figures and times in the form people read them."""

from __future__ import annotations

from datetime import UTC, datetime

_SIZES = ("B", "KB", "MB", "GB", "TB")


def duration(milliseconds: float) -> str:
    """Return a span of time: `0.2 s`, `14.2 s`, `3:07 min`, `2:05 h`."""
    seconds = max(0.0, milliseconds / 1000)
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes}:{rest:02d} min"
    return f"{minutes // 60}:{minutes % 60:02d} h"


def elapsed(seconds: float) -> str:
    """Return a running time as a clock shows it: `0:41`, `12:08`, `1:02:03`."""
    whole = max(0, int(seconds))
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes}:{rest:02d}"
    return f"{minutes // 60}:{minutes % 60:02d}:{rest:02d}"


def size(count: int) -> str:
    """Return a number of bytes: `412 B`, `3.1 KB`, `3.1 MB`."""
    value = float(count)
    for unit in _SIZES:
        if value < 1000 or unit == _SIZES[-1]:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1000
    raise AssertionError("the last unit takes any number")


def number(count: int) -> str:
    """Return a rounded count: `412`, `12.4 k`, `4.1 M`."""
    if count < 1000:
        return str(count)
    value, unit = (count / 1000, "k") if count < 999_950 else (count / 1_000_000, "M")
    return f"{value:.1f}".removesuffix(".0") + f" {unit}"


def usd(dollars: float) -> str:
    """Return money: `$12.40`, `$0.0350`; what is hardly anything is told so."""
    if 0 < dollars < 0.0001:
        return "<$0.0001"
    return f"${dollars:,.2f}" if dollars >= 1 or not dollars else f"${dollars:.4f}"


def moment(value: str | datetime) -> datetime:
    """Return an ISO 8601 text, or an aware time, as UTC."""
    if isinstance(value, str):
        value = datetime.fromisoformat(value)
    return value.astimezone(UTC)


def count(number_of: int, one: str, many: str) -> str:
    """Return `1 call`, `2 calls`, `12,031 lines`."""
    return f"{number_of:,} {one if number_of == 1 else many}"
