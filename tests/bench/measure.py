"""One measurement as one JSON line."""

import json
import statistics
from collections.abc import Sequence
from typing import Any


def line(
    name: str,
    unit: str,
    samples: Sequence[float],
    *,
    versus: str | None = None,
    **more: Any,
) -> dict[str, Any]:
    """Return the line of some samples; `value` is their median."""
    ordered = sorted(samples)
    median = statistics.median(ordered)
    found = {
        "name": name,
        "value": round(median, 3),
        "unit": unit,
        "n": len(ordered),
        "median": round(median, 3),
        "p95": round(ordered[min(len(ordered) - 1, int(len(ordered) * 0.95))], 3),
        "min": round(ordered[0], 3),
        "max": round(ordered[-1], 3),
        **more,
    }
    if versus is not None:
        found["versus"] = versus
    return found


def printed(found: dict[str, Any]) -> str:
    """Return the line as it goes to stdout."""
    return json.dumps(found, ensure_ascii=False)
