"""The viewer: the list of a project's Traces, and every event of one, in order.

Reading asks Django's permissions about the Trace itself, so an imported or deleted
session's record is as readable as a live one's. What a person looked at is noted in
the instance journal.
"""

from __future__ import annotations

import json
from typing import Any

from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.http import urlencode
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from traces_app import journal, reader
from traces_app.event_row import row_of, rows_of
from traces_app.image_response import image_response
from traces_app.models import Checkpoint, Trace
from traces_app.omnimessage.codec import CodecError
from traces_app.pictures import image_of, pictures_of, without_bytes
from traces_app.rendering import entry_of
from traces_app.spending import spending_of
from traces_app.verify import verify_trace

PAGE = 200
BEFORE = 50  # rows shown before the event a link names
LIST_PAGE = 100
MAX_SEQ = 2**63
# Events of the Trace, checkpoints of the instance: beyond it, verified when asked.
VERIFIED_AT_ONCE = 2000
KINDS = {
    "message": ("text", "thinking", "image_url", "inline_data"),
    "tool_call": ("tool_call",),
    "approval": ("approval_request", "approval_decision"),
    "output": ("tool_call_output", "tool_started"),
    "request": ("request_begin", "request_end", "token_usage"),
    "session": (
        "session_meta",
        "mode_changed",
        "config_in_force",
        "recovered",
        "abort",
    ),
}


@require_GET
@login_required
@never_cache
def trace(request: HttpRequest, project: str, session: str) -> HttpResponse:
    """Show a page of events, filtered as the address says."""
    record = _trace_for(request, project, session)
    filters = _filters(request)
    selected = _number(request.GET.get("event"))
    after = _number(request.GET.get("after"))
    if selected and "after" not in request.GET:
        after = max(0, selected - BEFORE)
    events = reader.events(
        record.pk, after=after, limit=PAGE + 1, is_light=True, **filters
    )
    page, more = events[:PAGE], len(events) > PAGE
    head = reader.head_seq(record.pk)
    context = {
        "trace": record,
        "project": project,
        "rows": rows_of(page),
        "head": head,
        "query": request.GET.get("q", ""),
        "types": request.GET.getlist("type"),
        "kinds": list(KINDS),
        "decision": request.GET.get("decision", ""),
        "older": _address(request, after=max(0, after - PAGE)) if after else "",
        "newer": _address(request, after=page[-1].seq) if more else "",
        "here": _address(request, after=after),
        "kept": _kept(request),
        "detail": _detail(record, selected),
        "spent": spending_of(record.session_id),
        "report": _report(request, record, head),
        "images_url": reverse("image", args=[project, session, 0, 0])[: -len("0/0/")],
        "may_verify": request.user.has_perm("traces_app.verify_trace", record),
        "may_export": request.user.has_perm("traces_app.export_trace", record),
    }
    _note(request, "read", record)
    return render(request, "traces_app/trace.html", context)


@require_GET
@login_required
@never_cache
def trace_list(request: HttpRequest, project: str) -> HttpResponse:
    """Show the Traces of a project, the newest first."""
    example = Trace(project=project)
    if not request.user.has_perm("traces_app.view_trace", example):
        raise Http404
    rows = Trace.objects.filter(project=project).order_by("-id")
    if before := _number(request.GET.get("before")):
        rows = rows.filter(pk__lt=before)
    if query := request.GET.get("q", "").strip():
        rows = rows.filter(title__icontains=query)
    found = list(rows[: LIST_PAGE + 1])
    page = found[:LIST_PAGE]
    more: dict[str, str] = {}
    if len(found) > LIST_PAGE:
        more = {"before": str(page[-1].pk), "q": query}
    context = {"project": project, "traces": page, "query": query}
    context["older"] = urlencode(more)
    return render(request, "traces_app/trace_list.html", context)


@require_GET
@login_required
def image(
    request: HttpRequest, project: str, session: str, seq: int, number: int
) -> HttpResponse:
    """Hand out an image of an event, as the type its bytes are, and as no other."""
    record = _trace_for(request, project, session)
    event = reader.event_at(record.pk, seq) if seq < MAX_SEQ else None
    try:
        found = image_of(event.message.payload, number) if event else None
    except CodecError:
        found = None
    if found is None:
        raise Http404("There is no image at this place.")
    data, kind = found
    return image_response(request, data, kind, name=f"{session}-{seq}-{number}")


def _trace_for(request: HttpRequest, project: str, session: str) -> Trace:
    record = reader.trace_for(session)
    is_readable = record is not None and record.project == project
    if not is_readable or not request.user.has_perm("traces_app.view_trace", record):
        raise Http404
    assert record is not None
    return record


def _filters(request: HttpRequest) -> dict[str, Any]:
    kinds: list[str] = []
    for name in request.GET.getlist("type"):
        # A name of ours stands for several kinds; any other is a kind itself.
        kinds += KINDS.get(name, (name,)) if name else ()
    return {
        "kinds": kinds,
        "tool": request.GET.get("tool") or None,
        "decision": request.GET.get("decision") or None,
        "q": request.GET.get("q", "").strip() or None,
    }


def _number(text: str | None) -> int:
    return int(text) if text and text.isdecimal() and len(text) < 16 else 0


def _address(request: HttpRequest, **changes: Any) -> str:
    """Return the query of this page with some values changed."""
    query = request.GET.copy()
    for name in ("event", "verify"):
        query.pop(name, None)
    for name, value in changes.items():
        query[name] = str(value)
    return query.urlencode()


def _detail(record: Trace, seq: int) -> dict[str, Any] | None:
    """Return everything about the event that is selected."""
    event = reader.event_at(record.pk, seq) if seq else None
    if event is None:
        return None
    before = reader.event_at(record.pk, event.seq - 1)
    detail: dict[str, Any] = {
        "event": event,
        "row": row_of(event),
        "before": before.hash if before else "",
        "raw": event.json,
    }
    try:
        raw = without_bytes(json.loads(event.json))
        detail["raw"] = json.dumps(raw, ensure_ascii=False, indent=2)
        detail["entry"] = entry_of(event, agent="the model", author="user")
        detail["pictures"] = pictures_of(event.message.payload)
    except (ValueError, CodecError):
        pass
    return detail


def _kept(request: HttpRequest) -> list[tuple[str, str]]:
    """Return what a page of the viewer shows, for a form that shows the same again."""
    return [
        (key, value)
        for key in request.GET
        if key != "verify"
        for value in request.GET.getlist(key)
    ]


def _report(request: HttpRequest, record: Trace, head: int) -> Any:
    """Return the verdicts: asked for by the button, given unasked where it is cheap."""
    is_asked = "verify" in request.GET
    if not request.user.has_perm("traces_app.verify_trace", record):
        if is_asked:
            raise PermissionDenied("your role does not allow verifying this record")
        return None
    if not is_asked and max(head, _checkpoints()) > VERIFIED_AT_ONCE:
        return None
    if is_asked:
        _note(request, "verify", record)
    return verify_trace(record.session_id)


def _checkpoints() -> int:
    newest = Checkpoint.objects.order_by("-number").first()
    return newest.number if newest else 0


def _note(request: HttpRequest, kind: str, record: Trace) -> None:
    journal.record(
        kind,
        request.user.get_username(),
        session_id=record.session_id,
        project=record.project,
    )
