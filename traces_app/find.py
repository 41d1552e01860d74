"""Find: the database narrows down by text, then only what a reader sees counts.

The stored text is JSON, in which a searched quote or newline is escaped, twice in
the arguments of a call. Names of fields are in it as well, but nobody reads them.
"""

from __future__ import annotations

import json
from typing import Any

from django.db.models import Exists, OuterRef, Q, QuerySet

from traces_app.models import BodyPart, TraceEvent


def candidates(rows: QuerySet[TraceEvent], q: str) -> QuerySet[TraceEvent]:
    """Return the rows whose stored text may hold `q`; some hold it in a field name."""
    in_place, in_part = Q(), Q()
    for spelling in spellings(q):
        in_place |= Q(body__text__icontains=spelling)
        in_part |= Q(blob__text__icontains=spelling)
    parts = BodyPart.objects.filter(in_part, body_id=OuterRef("pk"))
    return rows.filter(in_place | (Q(body__has_parts=True) & Exists(parts)))


def spellings(q: str) -> list[str]:
    """Return the ways in which stored JSON may spell `q`.

    Only ASCII folds case in SQLite's LIKE, so other letters come in the usual cases.
    """
    cases = [q] if q.isascii() else [q, q.lower(), q.upper(), q.capitalize()]
    ways: dict[str, None] = {}
    for case in cases:
        once = json.dumps(case, ensure_ascii=False)[1:-1]
        twice = json.dumps(once, ensure_ascii=False)[1:-1]
        ascii_only = json.dumps(case)[1:-1]  # as other programs write it
        for way in (case, once, twice, ascii_only, json.dumps(ascii_only)[1:-1]):
            ways[way] = None
    return list(ways)


def is_visible(q: str, text: str) -> bool:
    """Return whether some value of the message holds `q`, whatever the case."""
    return _holds(json.loads(text), q.casefold())


def _holds(value: Any, needle: str) -> bool:
    if isinstance(value, str):
        return needle in value.casefold() or _holds_decoded(value, needle)
    if isinstance(value, dict):
        return any(_holds(item, needle) for item in value.values())
    if isinstance(value, list):
        return any(_holds(item, needle) for item in value)
    return value is not None and needle in json.dumps(value)


def _holds_decoded(text: str, needle: str) -> bool:
    """Look into the arguments of a call, which are JSON text and shown decoded."""
    if "\\" not in text or not text.startswith(("{", "[", '"')):
        return False
    try:
        return _holds(json.loads(text), needle)
    except (ValueError, RecursionError):
        return False
