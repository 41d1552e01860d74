"""Calls about the record: pages of events, export, import."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from typing import Annotated, Any, Literal

from asgiref.sync import sync_to_async
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from ninja import Router, Status
from pydantic import Field

from sessions_app import runtime
from sessions_app.api.answers import caller, responses
from sessions_app.api.credentials import Credentials
from sessions_app.api.errors import ApiError
from sessions_app.api.schemas import MAX_SEQ, CleanText, EventPage, TraceOut
from sessions_app.permissions import Action, User, project_for, trace_for
from traces_app import exports, imports, journal
from traces_app.omnimessage.payloads import EVENT_PAYLOADS, MODEL_PAYLOADS
from traces_app.stored_event import StoredEvent

router = Router(tags=["record"])
_ENVELOPES = {
    "model_msg": tuple(payload.KIND for payload in MODEL_PAYLOADS),
    "event_msg": tuple(payload.KIND for payload in EVENT_PAYLOADS),
}


@router.get("sessions/{session_id}/events", response=responses(EventPage))
async def list_events(
    request: HttpRequest,
    session_id: str,
    after: Annotated[int, Field(ge=0, le=MAX_SEQ)] = 0,
    limit: Annotated[int, Field(ge=1, le=1000)] = 200,
    type: CleanText = "",
    tool: CleanText = "",
    decision: CleanText = "",
    q: CleanText = "",
) -> HttpResponse:
    """Read events in order; also of sessions that were deleted, or imported."""
    filters = {
        "kinds": _ENVELOPES.get(type, (type,) if type else ()),
        "tool": tool or None,
        "decision": decision or None,
        "q": q or None,
    }
    events = await sync_to_async(_events)(
        caller(request), session_id, after=after, limit=limit, **filters
    )
    return HttpResponse(_page(events, limit), content_type="application/json")


def _events(user: User, session_id: str, **filters: Any) -> list[StoredEvent]:
    trace = trace_for(user, Action.READ, session_id)
    journal.record(
        "read", user.get_username(), session_id=session_id, project=trace.project
    )
    return runtime.trace_events(trace, **filters)


def _page(events: list[StoredEvent], limit: int) -> str:
    """Write the page with every message's exact text."""
    rows = ", ".join(
        f'{{"seq": {event.seq}, "segment": {event.segment}, '
        f'"hash": {json.dumps(event.hash)}, "message": {event.json}}}'
        for event in events
    )
    upto = events[-1].seq if len(events) == limit else None
    return f'{{"events": [{rows}], "next": {json.dumps(upto)}}}'


_JSONL = "application/x-ndjson"
_CHUNK = 64 * 1024  # bytes of an upload read at a time


@router.get(
    "sessions/{session_id}/trace.jsonl",
    response=responses(None),
    openapi_extra={"responses": {200: {"description": "OK", "content": {_JSONL: {}}}}},
)
async def export_trace(request: HttpRequest, session_id: str) -> StreamingHttpResponse:
    """Export the record: one OmniMessage per line, exactly as it was written."""
    chunks = await sync_to_async(_exported)(caller(request), session_id)
    response = StreamingHttpResponse(_in_threads(chunks), content_type=_JSONL)
    response["Content-Disposition"] = f'attachment; filename="{session_id}.jsonl"'
    return response


def _exported(user: User, session_id: str) -> Iterator[bytes]:
    trace = trace_for(user, Action.AUDIT, session_id)
    journal.record(
        "export", user.get_username(), session_id=session_id, project=trace.project
    )
    return exports.jsonl(trace)


async def _in_threads(chunks: Iterator[bytes]) -> AsyncIterator[bytes]:
    """Take each chunk off the loop: it reads the database."""
    take = sync_to_async(lambda: next(chunks, None))
    while (chunk := await take()) is not None:
        yield chunk


@router.post(
    "projects/{project}/traces",
    response=responses(TraceOut, 201),
    auth=Credentials(takes_any_body=True),
    openapi_extra={"requestBody": {"content": {_JSONL: {}}, "required": True}},
)
async def import_trace(
    request: HttpRequest, project: str, damaged: Literal["refuse", "mark"] = "refuse"
) -> Status[Any]:
    """Import a record, all of it or nothing; `mark` keeps the place of bad lines."""
    user = caller(request)
    answer = await sync_to_async(_imported)(request, user, project, damaged)
    return Status(201, answer)


def _imported(
    request: HttpRequest, user: User, slug: str, damaged: Literal["refuse", "mark"]
) -> dict[str, Any]:
    project = project_for(user, Action.AUDIT, slug)
    chunks = iter(lambda: request.read(_CHUNK), b"")
    try:
        trace = imports.import_trace(
            chunks, project=project.slug, by=user.get_username(), damaged=damaged
        )
    except imports.TraceExists as error:
        raise ApiError(
            409,
            str(error),
            code="trace_exists",
            details={"session_id": error.trace.session_id},
        ) from None
    except imports.ImportRefused as error:
        problems = [{"line": p.line, "reason": p.reason} for p in error.problems]
        message = f"Nothing was imported. {str(error).capitalize()}."
        raise ApiError(422, message, code="invalid_trace", details=problems) from None
    marked = runtime.trace_events(trace, kinds=("damaged",), limit=1000)
    return {
        "session_id": trace.session_id,
        "events": trace.events.order_by("-seq").values_list("seq", flat=True)[0],
        "damaged": len(marked),
    }
