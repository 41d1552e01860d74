"""Where a page of a long chat begins: so many requests from its end, or from a place."""

from __future__ import annotations

from traces_app import reader
from traces_app.models import TraceEvent

_LEAD = 12  # events looked at before a request for the message it answers


def window_start(trace_id: int, *, requests: int, before: int | None = None) -> int:
    """Return the seq a page of so many requests begins with; 1 if that is all.

    It never parts a request from its message, nor from its calls and outputs: those
    follow it before the next one begins. `before` ends the page in front of that seq.
    """
    begins = TraceEvent.objects.filter(trace_id=trace_id, kind="request_begin")
    if before is not None:
        begins = begins.filter(seq__lt=before)
    last = list(begins.order_by("-seq").values_list("seq", flat=True)[: requests + 1])
    if len(last) <= requests:
        return 1
    return _with_message(trace_id, last[requests - 1])


def _with_message(trace_id: int, begin: int) -> int:
    """Return where the message a request answers begins, else the request itself."""
    after = max(0, begin - 1 - _LEAD)
    lead = reader.events(trace_id, after=after, limit=begin - 1 - after)
    start = begin
    for event in reversed(lead):
        role = getattr(event.message.payload, "role", "")
        if event.kind not in ("text", "image_url") or role != "user":
            break
        start = event.seq
    return start
