"""Export as OpenTelemetry: one OTLP/JSON document, streamed span by span.

A session is a trace: the run is the root span, each request to a model a `chat` span,
each call an `execute_tool` span from the call to its output; what belongs to neither
is a span of no length. Every record stands, whole, as an event of one of them.
Names follow the GenAI conventions, which are still in development; the document
names the version it follows.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from traces_app import reader
from traces_app.models import Trace
from traces_app.stored_event import StoredEvent

SCHEMA_URL = "https://opentelemetry.io/schemas/1.41.0"
_INTERNAL, _CLIENT = 1, 3
_ERROR = 2
_GOOD = ("completed", None)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(slots=True)
class _Span:
    name: str
    key: str  # what makes its id
    start: str  # nanoseconds
    end: str
    kind: int = _INTERNAL
    attributes: dict[str, Any] = field(default_factory=dict)
    events: list[dict[str, Any]] = field(default_factory=list)
    error: str | None = None


def otlp(trace: Trace) -> Iterator[bytes]:
    """Stream the document; memory holds the spans that are open."""
    head = reader.head_seq(trace.pk)
    yield _opening(trace)
    spans = _Spans(trace)
    for event in reader.iter_events(trace.pk):
        if event.seq > head:
            break
        for span in spans.feed(event):
            yield spans.encoded(span) + b","
    *rest, root = spans.finish()
    for span in rest:
        yield spans.encoded(span) + b","
    yield spans.encoded(root) + b"]}]}]}\n"


def _opening(trace: Trace) -> bytes:
    resource = {
        "attributes": _attributes(
            {"service.name": "penguin-web", "penguin.project": trace.project}
        )
    }
    scope = {"name": "penguin_web.trace"}
    return (
        f'{{"resourceSpans":[{{"resource":{_json(resource)},'
        f'"schemaUrl":{_json(SCHEMA_URL)},"scopeSpans":[{{"scope":{_json(scope)},'
        f'"schemaUrl":{_json(SCHEMA_URL)},"spans":['
    ).encode()


class _Spans:
    """Sorts events into spans and gives a span out when it has ended."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._trace_id = hashlib.sha256(trace.session_id.encode()).hexdigest()[:32]
        self._root = _Span("invoke_agent", "root", "", "")
        self._root.attributes = {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.conversation.id": trace.session_id,
        }
        self._request: _Span | None = None
        self._ended_request: _Span | None = None  # its usage may still follow
        self._calls: dict[str, _Span] = {}

    def feed(self, event: StoredEvent) -> Iterator[_Span]:
        """Take the next event; yield the spans that ended."""
        payload = json.loads(event.json)["payload"]
        time = _nanoseconds(event.timestamp)
        self._root.start = self._root.start or time
        self._root.end = time
        if event.kind == "session_meta":
            self._root.attributes |= _model(payload)
        if self._ended_request is not None and event.kind != "token_usage":
            yield self._ended_request
            self._ended_request = None
        span = self._span_of(event, payload, time)
        span.events.append(_record(event, time))
        span.end = time
        if event.kind == "token_usage":
            span.attributes |= _usage(payload.get("request", {}))
        if event.kind == "tool_call_output":
            span.attributes["gen_ai.tool.call.result"] = payload.get("output", "")
        if event.kind in ("request_end", "tool_call_output"):
            self._note_error(span, event, payload)
        if event.kind == "request_end" and span is self._request:
            self._request, self._ended_request = None, span
        elif event.kind == "tool_call_output":
            self._calls.pop(payload.get("tool_call_id", ""), None)
            yield span
        elif span.key == f"event {event.seq}":
            yield span

    def finish(self) -> Iterator[_Span]:
        """Yield what is still open, the root last."""
        for span in (self._ended_request, self._request, *self._calls.values()):
            if span is not None:
                span.end = self._root.end
                yield span
        self._root.start = self._root.start or "0"
        self._root.end = self._root.end or "0"
        yield self._root

    def _span_of(self, event: StoredEvent, payload: Any, time: str) -> _Span:
        if event.kind == "request_begin":
            model = self._root.attributes.get("gen_ai.request.model", "")
            span = _Span(f"chat {model}", f"request {event.seq}", time, time, _CLIENT)
            span.attributes = {**self._root.attributes, "gen_ai.operation.name": "chat"}
            self._request = span
            return span
        if event.kind == "tool_call":
            return self._begin_call(event, payload, time)
        call = self._calls.get(payload.get("tool_call_id") or "")
        if call is not None:
            return call
        request = self._request or self._ended_request
        if request is not None and event.type == "event_msg":
            return request
        if self._request is not None and payload.get("role") == "assistant":
            return self._request
        return _Span(event.kind, f"event {event.seq}", time, time)

    def _begin_call(self, event: StoredEvent, payload: Any, time: str) -> _Span:
        name, call = payload["name"], payload["tool_call_id"]
        span = _Span(f"execute_tool {name}", f"call {event.seq}", time, time)
        span.attributes = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": name,
            "gen_ai.tool.type": "function",
            "gen_ai.tool.call.id": call,
            "gen_ai.tool.call.arguments": payload["arguments"],
        }
        self._calls[call] = span
        return span

    def _note_error(self, span: _Span, event: StoredEvent, payload: Any) -> None:
        if event.status not in _GOOD:
            span.error = str(payload.get("error_message") or event.status)
            span.attributes["error.type"] = event.status

    def encoded(self, span: _Span) -> bytes:
        """Return the JSON of a span."""
        value: dict[str, Any] = {
            "traceId": self._trace_id,
            "spanId": self._span_id(span),
            "name": span.name,
            "kind": span.kind,
            "startTimeUnixNano": span.start,
            "endTimeUnixNano": span.end,
            "attributes": _attributes(span.attributes),
            "events": span.events,
        }
        if span is not self._root:
            value["parentSpanId"] = self._span_id(self._root)
        if span.error is not None:
            value["status"] = {"code": _ERROR, "message": span.error}
        return _json(value).encode()

    def _span_id(self, span: _Span) -> str:
        return hashlib.sha256(f"{self._trace_id} {span.key}".encode()).hexdigest()[:16]


def _record(event: StoredEvent, time: str) -> dict[str, Any]:
    return {
        "timeUnixNano": time,
        "name": event.kind,
        "attributes": _attributes(
            {
                "penguin.seq": event.seq,
                "penguin.segment": event.segment,
                "penguin.hash": event.hash,
                "penguin.body": event.json,
            }
        ),
    }


def _model(payload: Any) -> dict[str, Any]:
    return {
        "gen_ai.provider.name": payload["provider"],
        "gen_ai.request.model": payload["model_id"],
    }


def _usage(request: Any) -> dict[str, Any]:
    read, write = request.get("cache_read", 0), request.get("cache_write", 0)
    return {
        "gen_ai.usage.input_tokens": read + write,
        "gen_ai.usage.cache_read.input_tokens": read,
        "gen_ai.usage.output_tokens": request.get("output", 0),
    }


def _attributes(values: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"key": key, "value": _value(value)} for key, value in values.items()]


def _value(value: Any) -> dict[str, Any]:
    if isinstance(value, int):
        return {"intValue": str(value)}  # 64 bits are a string in OTLP/JSON
    return {"stringValue": str(value)}


def _nanoseconds(timestamp: str) -> str:
    moment = datetime.fromisoformat(timestamp) - _EPOCH
    whole = moment.days * 86400 + moment.seconds
    return str(whole * 10**9 + moment.microseconds * 1000)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
