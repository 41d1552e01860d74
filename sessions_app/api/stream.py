"""The live stream of a session as server-sent events."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator
from contextlib import aclosing

from asgiref.sync import sync_to_async
from django.http import Http404, HttpRequest, StreamingHttpResponse
from ninja import Router

from sessions_app import runtime
from sessions_app.api.answers import caller, responses
from sessions_app.api.errors import ApiError
from sessions_app.permissions import Action, User, forget, session_for
from sessions_app.runtime import ServerSentEvent

router = Router(tags=["record"])

BEAT_S = 15.0
_EVENT_ID = re.compile(r"\d{1,18}(\.\S+\.\d{1,18})?")
_OPENAPI = {
    "responses": {
        200: {"description": "OK", "content": {"text/event-stream": {}}},
    }
}


@router.get(
    "sessions/{session_id}/stream", response=responses(None), openapi_extra=_OPENAPI
)
async def stream(
    request: HttpRequest, session_id: str, after: str | None = None
) -> StreamingHttpResponse:
    """Follow a session: from what comes next, or after `Last-Event-ID` or `after`."""
    user = caller(request)
    session = await sync_to_async(session_for)(user, Action.READ, session_id)
    last_id = request.headers.get("Last-Event-ID") or after
    if last_id is not None and not _EVENT_ID.fullmatch(last_id):
        raise ApiError(422, f"{last_id!r} is no event id of this stream.")
    # Placed before the answer begins: what happens after it is in the stream.
    events = await runtime.stream_events(session, last_id)
    response = StreamingHttpResponse(
        _lines(events, user, session_id), content_type="text/event-stream"
    )
    response["Cache-Control"] = "no-store"
    response["X-Accel-Buffering"] = "no"
    return response


async def _lines(
    events: AsyncGenerator[ServerSentEvent, None], user: User, session_id: str
) -> AsyncGenerator[str, None]:
    """Write the events and, every `BEAT_S`, a comment; end when access has ended."""
    clock = asyncio.get_running_loop().time
    beat = clock() + BEAT_S
    async with aclosing(events):
        upcoming = asyncio.ensure_future(anext(events, None))
        try:
            yield ": stream\n\n"
            while True:
                await asyncio.wait({upcoming}, timeout=max(0.0, beat - clock()))
                if clock() >= beat:
                    if not await sync_to_async(_may_read)(user, session_id):
                        return
                    beat = clock() + BEAT_S
                    yield ": still here\n\n"
                if upcoming.done():
                    event = upcoming.result()
                    if event is None:
                        return
                    yield _written(event)
                    upcoming = asyncio.ensure_future(anext(events, None))
        finally:
            # A generator cannot be closed while it is being asked for its next item.
            upcoming.cancel()
            await asyncio.wait({upcoming})


def _written(event: ServerSentEvent) -> str:
    name = f"event: {event.event}\n" if event.event else ""
    return f"id: {event.id}\n{name}data: {event.data}\n\n"


def _may_read(user: User, session_id: str) -> bool:
    forget(user)
    try:
        session_for(user, Action.READ, session_id)
    except Http404:
        return False
    return True
