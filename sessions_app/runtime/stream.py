"""The stream of one session as OmniMessages: the tail of the Trace plus deltas.

Built from the same frames a page gets. For a call the deltas are what its output
will begin with: they stop at the cap, and what the complete output has beyond them
(markers) comes as one last delta, so that joined deltas equal the output. Messages of
subagents stand between the session's own, with their `origin`.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Iterator
from dataclasses import dataclass, field

from asgiref.sync import sync_to_async

from sessions_app.models import Session
from sessions_app.runtime.child_viewers import CarriedChildren
from sessions_app.runtime.feed import Feed, pending_requests
from sessions_app.runtime.frames import (
    BindFrame,
    ChildFrame,
    EventFrame,
    Frame,
    ItemFrame,
    Span,
    StateFrame,
)
from sessions_app.runtime.hub import Hub
from sessions_app.runtime.items import is_text_item, kind_of
from sessions_app.runtime.viewer import Viewer
from traces_app import reader
from traces_app.omnimessage import OmniMessage, StopReason
from traces_app.omnimessage.codec import dumps
from traces_app.omnimessage.payloads import (
    EventType,
    PartialText,
    PartialThinking,
    PartialToolCallOutput,
    Payload,
    ToolCallOutput,
)
from traces_app.reader import StoredEvent


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSentEvent:
    """One event of the stream; `id` resumes after it, `event` is empty for messages."""

    id: str
    event: str
    data: str


@dataclass(slots=True)
class Stream:
    """One reader's place in the stream."""

    session_id: str
    viewer: Viewer
    _cap: int = 16000  # characters after which an output may be cut
    _calls: dict[str, str] = field(default_factory=dict)  # item: the call it shows
    _starts: dict[str, int] = field(default_factory=dict)  # call: where it began
    _sent: dict[str, int] = field(default_factory=dict)  # call: characters sent
    _told: dict[str, int] = field(default_factory=dict)  # text: where its deltas end
    _children: dict[str, Stream] = field(default_factory=dict)
    _state: str = ""

    async def events(self) -> AsyncGenerator[ServerSentEvent, None]:
        """Yield what is new, for ever."""
        async for frame in self.viewer.frames():
            for event in self._encode(frame):
                yield event
            if isinstance(frame, StateFrame):
                async for event in self._status():
                    yield event

    def _encode(self, frame: Frame) -> Iterator[ServerSentEvent]:
        match frame:
            case ItemFrame(item=item):
                yield self._delta(item, 0, self._text(item, "start"))
            case BindFrame(call_id=call_id, item=item, start=start):
                yield from self._bind(call_id, item, start)
            case Span():
                yield from self._span(frame)
            case EventFrame(event=stored, item=item):
                yield from self._recorded(stored, item)
            case ChildFrame(session_id=session_id, frame=child_frame) if child_frame:
                yield from self._carried(session_id, child_frame)
            case _:
                pass

    def _carried(self, session_id: str, frame: Frame) -> Iterator[ServerSentEvent]:
        """Yield a subagent's messages; a reader comes back behind its last event."""
        assert isinstance(self.viewer.children, CarriedChildren)
        viewer = self.viewer.children.viewers[session_id]
        child = self._children.get(session_id)
        if child is None:
            child = Stream(session_id=session_id, viewer=viewer)
            self._children[session_id] = child
        for event in child._encode(frame):
            message = json.loads(event.data)
            message["origin"] = [session_id, *message.get("origin", ())]
            place = f"{self.viewer.seq}.{session_id}.{viewer.seq}"
            yield ServerSentEvent(id=place, event="", data=dumps(message))

    def _bind(self, call_id: str, item: str, start: int) -> Iterator[ServerSentEvent]:
        self._calls[item] = call_id
        self._starts[call_id] = start
        resumed = self.viewer.have.get(item, start) - start
        self._sent[call_id] = max(0, resumed)
        if resumed <= 0:
            yield self._delta(item, start, _output(call_id, "start"))

    def _span(self, span: Span) -> Iterator[ServerSentEvent]:
        self.viewer.ack(self.viewer.sent)
        if is_text_item(span.item):
            self._told[span.item] = span.stop
            yield self._delta(
                span.item, span.stop, self._text(span.item, "delta", span.text)
            )
            return
        call_id = self._calls.get(span.item)
        if call_id is None:
            return
        room = self._cap - self._sent[call_id]
        text = span.text[: max(0, room)]
        if text:
            self._sent[call_id] += len(text)
            yield self._delta(span.item, span.stop, _output(call_id, "delta", text))

    def _recorded(
        self, stored: StoredEvent, item: str | None
    ) -> Iterator[ServerSentEvent]:
        payload = stored.message.payload
        if item is not None:
            yield from self._finish_text(item, payload)
        if isinstance(payload, ToolCallOutput):
            yield from self._finish(payload)
        yield ServerSentEvent(id=str(stored.seq), event="", data=stored.json)

    def _finish_text(self, item: str, payload: Payload) -> Iterator[ServerSentEvent]:
        """Send what no delta held yet: joined deltas equal the complete text."""
        text = getattr(payload, "text", "") or getattr(payload, "thinking", "")
        if rest := text[self._told.pop(item, 0) :]:
            yield self._delta(item, len(text), self._text(item, "delta", rest))
        yield self._delta(item, len(text), self._text(item, "stop"))

    def _finish(self, output: ToolCallOutput) -> Iterator[ServerSentEvent]:
        call_id = output.tool_call_id
        sent = self._sent.pop(call_id, None)
        item = next((i for i, c in self._calls.items() if c == call_id), None)
        if sent is None or item is None:
            return
        del self._calls[item]
        at = self._starts.pop(call_id) + sent
        if rest := output.output[sent:]:
            yield self._delta(item, at, _output(call_id, "delta", rest))
        stop = _output(call_id, "stop", reason=output.stop_reason)
        yield self._delta(item, at, stop)

    async def _status(self) -> AsyncGenerator[ServerSentEvent, None]:
        data = await sync_to_async(self._read_state)()
        if data == self._state:
            return
        # Events are read after the state: all it follows from is told before it.
        async for frame in self._news():
            for event in self._encode(frame):
                yield event
        self._state = data
        yield ServerSentEvent(id=str(self.viewer.seq), event="status", data=data)

    async def _news(self) -> AsyncGenerator[Frame, None]:
        async for frame in self.viewer.news():
            yield frame
        if self.viewer.children:
            async for child_frame in self.viewer.children.catch_up():
                yield child_frame

    def _read_state(self) -> str:
        session = Session.objects.filter(pk=self.session_id).first()
        pending = [
            {
                "session": row.session_id,
                "tool_call_id": row.tool_call_id,
                "attempt": row.attempt,
                "name": row.name,
                "arguments_sha256": row.arguments_sha256,
            }
            for row in pending_requests(self.session_id)
        ]
        status = session.status if session else "idle"
        return json.dumps({"status": status, "approvals": pending})

    def _delta(self, item: str, offset: int, message: OmniMessage) -> ServerSentEvent:
        place = f"{self.viewer.seq}.{item}.{offset}"
        return ServerSentEvent(id=place, event="", data=message.to_json())

    @staticmethod
    def _text(item: str, event_type: EventType, text: str = "") -> OmniMessage:
        if kind_of(item) == "thinking":
            return OmniMessage(
                payload=PartialThinking(
                    role="assistant", event_type=event_type, thinking=text
                )
            )
        return OmniMessage(
            payload=PartialText(role="assistant", event_type=event_type, text=text)
        )


def _output(
    call_id: str,
    event_type: EventType,
    text: str = "",
    *,
    reason: StopReason | None = None,
) -> OmniMessage:
    return OmniMessage(
        payload=PartialToolCallOutput(
            role="user",
            event_type=event_type,
            tool_call_id=call_id,
            output=text,
            stop_reason=reason,
        )
    )


async def open_stream(feed: Feed, hub: Hub, last_id: str | None) -> Stream:
    """Place a viewer where `last_id` says; None: at what comes next.

    A `last_id` that is none of ours raises `ValueError`.
    """
    viewer = Viewer(feed=feed, hub=hub)
    places: dict[str, int] = {}
    if last_id is None:
        viewer.seq = await sync_to_async(reader.head_seq)(feed.trace_id)
        for item, end in (await feed.ends()).items():
            viewer.have[item] = end
    else:
        seq, _, rest = last_id.partition(".")
        viewer.seq = int(seq)
        if rest:
            item, _, offset = rest.rpartition(".")
            places[item] = viewer.have[item] = int(offset)
    moment = await sync_to_async(_moment)(feed, viewer.seq) if last_id else None
    viewer.children = CarriedChildren(feed, hub, places=places, moment=moment)
    told = dict(viewer.have)
    return Stream(session_id=feed.session_id, viewer=viewer, _told=told)


def _moment(feed: Feed, seq: int) -> str:
    """Return when the last event the reader has was made."""
    last = reader.event_at(feed.trace_id, seq)
    return last.message.timestamp if last else ""
