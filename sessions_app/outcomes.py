"""How a session that is at rest came to rest, told from the end of its record."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from django.db.models import OuterRef, Subquery

from traces_app.models import Trace, TraceEvent
from traces_app.omnimessage import StopReason


class Outcome(StrEnum):
    """What a list says of a session nobody works in."""

    NEW = "new"  # nothing was asked yet
    DONE = "done"
    FAILED = "failed"
    STOPPED = "stopped"


_ENDS = ("request_end", "abort")


def outcomes_of(trace_ids: Iterable[int]) -> dict[int, Outcome]:
    """Return the outcome of each Trace; one query, which reads only their ends."""
    ends = TraceEvent.objects.filter(trace=OuterRef("pk"), kind__in=_ENDS)
    newest = ends.order_by("-seq")
    rows = Trace.objects.filter(pk__in=list(trace_ids)).values_list(
        "pk", Subquery(newest.values("kind")[:1]), Subquery(newest.values("status")[:1])
    )
    return {trace_id: _outcome(kind, status) for trace_id, kind, status in rows}


def _outcome(kind: str | None, status: str | None) -> Outcome:
    if kind is None:
        return Outcome.NEW
    if kind == "abort" or status == StopReason.ABORTED:
        return Outcome.STOPPED
    return Outcome.DONE if status == StopReason.COMPLETED else Outcome.FAILED
