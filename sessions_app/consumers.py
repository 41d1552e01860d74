"""WebSockets: news of one session, or of a project's list. Nothing comes in but acks."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from typing import Any

from asgiref.sync import sync_to_async
from channels.generic.websocket import AsyncWebsocketConsumer

from sessions_app import fragments, runtime
from sessions_app.models import Project, Session
from sessions_app.permissions import Action, forget, may
from sessions_app.runtime.frames import (
    BindFrame,
    ChildFrame,
    EventFrame,
    Frame,
    ItemFrame,
    LineFrame,
    ResetFrame,
    StateFrame,
)
from sessions_app.runtime.viewer import Viewer

logger = logging.getLogger(__name__)

# Applications may close with 1000 or with codes from 3000 on, nothing between.
NONSENSE = 4400
FAULT = 4500
FORBIDDEN = 4404  # the session is not there, or not for this person
LIST_S = 0.5  # a project's list is refreshed at most this often
BEAT_S = 4.0  # a page that hears nothing for two beats connects anew


class NoLongerAllowed(Exception):
    """The person lost the right to read what the socket tells."""


class SessionConsumer(AsyncWebsocketConsumer):
    """Sends one session's news, from what the page says it has."""

    _viewer: Viewer | None = None
    _task: asyncio.Task[None] | None = None
    _state: str = ""
    _children: dict[str, str]
    _beat_at: float = 0.0

    async def connect(self) -> None:
        """Accept who may read the session; others are closed with 4404."""
        session_id = self.scope["url_route"]["kwargs"]["session"]
        self._children = {}
        self._session = await sync_to_async(_readable)(self.scope["user"], session_id)
        await self.accept()
        if self._session is None:
            await self.close(code=FORBIDDEN)

    async def receive(
        self, text_data: str | None = None, bytes_data: bytes | None = None
    ) -> None:
        """Take the first message, acks, and questions for missing text."""
        try:
            message = json.loads(text_data or "")
            if not isinstance(message, dict):
                raise ValueError("a message is an object")
            if "have" in message:
                await self._start(dict(message["have"]), int(message["seq"]))
            elif self._viewer and "ack" in message:
                self._viewer.ack(int(message["ack"]))
            elif self._viewer and "again" in message:
                for item, offset in dict(message["again"]).items():
                    self._viewer.ask_again(str(item), max(0, int(offset)))
        except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
            await self.close(code=NONSENSE)

    async def disconnect(self, code: int) -> None:
        """Stop the pump."""
        if self._task:
            self._task.cancel()

    async def _start(self, have: dict[str, Any], seq: int) -> None:
        if self._session is None or self._task is not None:
            return
        self._viewer = runtime.viewer(
            self._session, have={str(k): int(v) for k, v in have.items()}, seq=seq
        )
        self._task = asyncio.create_task(self._pump(self._viewer))

    async def _pump(self, viewer: Viewer) -> None:
        try:
            async for frame in viewer.frames():
                if text := await self._encode(frame):
                    await self.send(text_data=text)
        except NoLongerAllowed:
            await self.close(code=FORBIDDEN)
        except Exception:
            # The page reconnects and says what it has: nothing is lost.
            logger.exception("A socket of %s ended early", viewer.feed.session_id)
            await self.close(code=FAULT)

    async def _encode(self, frame: Frame) -> str:
        match frame:
            case EventFrame(event=event, item=item):
                return await sync_to_async(self._event)(event, item)
            case ItemFrame(item=item):
                return await sync_to_async(self._item)(item)
            case StateFrame():
                html = await sync_to_async(self._status)()
                is_news, self._state = html != self._state, html
                return html if is_news else self._beat()
            case ChildFrame(session_id=child_id):
                return await sync_to_async(self._child)(child_id)
            case _:
                return json.dumps(_plain(frame), ensure_ascii=False)

    def _beat(self) -> str:
        """Return a sign of life now and then: a dead connection looks like silence."""
        now = time.monotonic()
        if now - self._beat_at < BEAT_S:
            return ""
        self._beat_at = now
        return json.dumps({"type": "beat"})

    def _item(self, item: str) -> str:
        assert self._session is not None
        kind = runtime.item_kind(item)
        return fragments.item_html(self._session, item, kind)

    def _child(self, child_id: str) -> str:
        assert self._session is not None
        html = fragments.child_html(self._session, child_id)
        is_news = html != self._children.get(child_id)
        self._children[child_id] = html
        return html if is_news else ""

    def _event(self, event: Any, item: str | None) -> str:
        assert self._session is not None
        html = fragments.event_html(self._session, event, item=item)
        return html + fragments.head_html(event.seq)

    def _status(self) -> str:
        assert self._session is not None
        if _readable(_fresh(self.scope["user"]), self._session.pk) is None:
            raise NoLongerAllowed
        self._session.refresh_from_db()
        pending = runtime.pending_requests(self._session.pk)
        return fragments.status_html(self._session, pending)


def _plain(frame: Frame) -> dict[str, Any]:
    """Return the JSON of a frame that the page's own script takes."""
    match frame:
        case BindFrame(call_id=call_id, item=item, start=start):
            return {"type": "bind", "call": call_id, "item": item, "start": start}
        case ResetFrame(item=item, start=start):
            return {"type": "reset", "item": item, "start": start}
        case LineFrame(item=item, at=at, text=text):
            return {"type": "line", "item": item, "at": at, "text": text}
        case runtime.Span(item=item, start=start, text=text, stop=stop):
            return {
                "type": "delta",
                "item": item,
                "start": start,
                "stop": stop,
                "text": text,
            }
    raise TypeError(f"{type(frame).__name__} has no JSON")


class ProjectConsumer(AsyncWebsocketConsumer):
    """Sends the rows of a project's list as they change, and the count that waits."""

    _task: asyncio.Task[None] | None = None

    async def connect(self) -> None:
        """Accept members; others are closed with 4404."""
        slug = self.scope["url_route"]["kwargs"]["project"]
        project = await Project.objects.filter(slug=slug).afirst()
        user: Any = self.scope["user"]
        is_member = project and await sync_to_async(may)(user, Action.READ, project)
        await self.accept()
        if not project or not is_member:
            await self.close(code=FORBIDDEN)
            return
        self._task = asyncio.create_task(self._pump(project))

    async def disconnect(self, code: int) -> None:
        """Stop the pump."""
        if self._task:
            self._task.cancel()

    async def _pump(self, project: Project) -> None:
        last = ""
        with runtime.watch_project(project.slug) as watch:
            while True:
                html = await sync_to_async(self._html)(project)
                if html is None:
                    await self.close(code=FORBIDDEN)
                    return
                if html != last:
                    last = html
                    await self.send(text_data=html)
                await watch.wait(5.0)
                await asyncio.sleep(LIST_S)

    def _html(self, project: Project) -> str | None:
        user = _fresh(self.scope["user"])
        if not may(user, Action.READ, project):
            return None
        return fragments.project_html(user, project)


def _fresh(user: Any) -> Any:
    """Return the account as it stands now; a socket outlives memberships."""
    forget(user)
    if user.is_authenticated:
        user.refresh_from_db(fields=["is_active", "is_superuser"])
    return user


def _readable(user: Any, session_id: str) -> Session | None:
    session = (
        Session.objects.select_related("project", "agent", "trace")
        .filter(pk=session_id, deleted_at=None)
        .first()
    )
    if session is None or not may(user, Action.READ, session.project):
        return None
    return session
