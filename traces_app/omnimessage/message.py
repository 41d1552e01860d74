"""The OmniMessage envelope and the builders for the kinds people write by hand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Literal, Self

from traces_app.omnimessage import payloads as p
from traces_app.omnimessage.codec import (
    CodecError,
    dumps,
    loads,
    payload_from_dict,
    payload_to_dict,
)

MessageType = Literal["session_meta", "model_msg", "event_msg"]


def now() -> str:
    """Return the current time as ISO 8601 UTC with milliseconds and a `Z`."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class OmniMessage:
    """One message of the protocol: an envelope around one payload.

    `origin` names the child sessions the message came through, outermost first.
    """

    payload: p.Payload
    timestamp: str = field(default_factory=now)
    origin: tuple[str, ...] = ()
    extra: Mapping[str, Any] = field(default_factory=p.no_extra)

    @property
    def type(self) -> MessageType:
        """Return the envelope's `type`, which follows from the payload."""
        if isinstance(self.payload, p.SessionMeta):
            return "session_meta"
        if isinstance(self.payload, (p.ModelPayload, p.Partial)):
            return "model_msg"
        return "event_msg"

    @property
    def kind(self) -> str:
        """Return the payload's kind: its `type`, or `session_meta`."""
        return self.payload.KIND

    @property
    def is_partial(self) -> bool:
        """Return whether this is a streaming piece, which is never recorded."""
        return isinstance(self.payload, p.Partial)

    def to_dict(self) -> dict[str, Any]:
        """Return the envelope as JSON-ready dict."""
        result: dict[str, Any] = {
            "timestamp": self.timestamp,
            "type": self.type,
            "payload": payload_to_dict(self.payload),
        }
        if self.origin:
            result["origin"] = list(self.origin)
        result.update(self.extra)
        return result

    def to_json(self) -> str:
        """Return the envelope as one line of JSON."""
        return dumps(self.to_dict())

    @classmethod
    def from_dict(cls, source: Any) -> Self:
        """Build a message from its dict; raises `CodecError` on anything wrong."""
        if not isinstance(source, dict):
            raise CodecError("expected an object")
        kind = source.get("type")
        if kind not in ("session_meta", "model_msg", "event_msg"):
            raise CodecError(f"type: unknown {kind!r}")
        origin = source.get("origin", [])
        if not isinstance(origin, list) or not all(isinstance(o, str) for o in origin):
            raise CodecError("origin: expected a list of session ids")
        known = {"timestamp", "type", "payload", "origin"}
        return cls(
            payload=payload_from_dict(kind, source.get("payload")),
            timestamp=_checked_time(source.get("timestamp")),
            origin=tuple(origin),
            extra={k: v for k, v in source.items() if k not in known} or p.NO_EXTRA,
        )

    @classmethod
    def from_json(cls, line: str) -> Self:
        """Parse one line; raises `CodecError` on anything wrong."""
        return cls.from_dict(loads(line))

    def with_origin(self, session_id: str) -> Self:
        """Return the message as it looks from the parent of `session_id`."""
        return replace(self, origin=(session_id, *self.origin))


def _checked_time(value: Any) -> str:
    if not isinstance(value, str):
        raise CodecError("timestamp: expected an ISO 8601 string")
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        raise CodecError(f"timestamp: {value!r} is not ISO 8601") from None
    if moment.tzinfo is None:
        raise CodecError(f"timestamp: {value!r} names no time zone")
    return value


def user_text(
    text: str, *, synthetic: str | None = None, author: str | None = None
) -> OmniMessage:
    """Return what a person (or, when synthetic, the product) tells the model."""
    payload = p.Text(role="user", text=text, synthetic=synthetic, author=author)
    return OmniMessage(payload=payload)


def assistant_text(text: str, *, fidelity: Any = None) -> OmniMessage:
    """Return a text the model wrote."""
    return OmniMessage(payload=p.Text(role="assistant", text=text, fidelity=fidelity))


def thinking(text: str, *, fidelity: Any = None) -> OmniMessage:
    """Return a thought of the model; a signature belongs into `fidelity`."""
    payload = p.Thinking(role="assistant", thinking=text, fidelity=fidelity)
    return OmniMessage(payload=payload)


def image_url(url: str) -> OmniMessage:
    """Return an image a person sends, as http(s) or data: URL."""
    return OmniMessage(payload=p.ImageUrl(role="user", image_url=url))


def tool_call(
    name: str, arguments: str, tool_call_id: str, *, fidelity: Any = None
) -> OmniMessage:
    """Return a complete tool call; `arguments` is JSON text as the model wrote it."""
    payload = p.ToolCall(
        role="assistant",
        tool_call_id=tool_call_id,
        name=name,
        arguments=arguments,
        fidelity=fidelity,
    )
    return OmniMessage(payload=payload)


def tool_call_output(
    tool_call_id: str,
    output: str,
    stop_reason: p.StopReason,
    *,
    images: tuple[str, ...] = (),
    details: Mapping[str, Any] = p.NO_EXTRA,
    synthetic: str | None = None,
) -> OmniMessage:
    """Return the one output of a call."""
    payload = p.ToolCallOutput(
        role="user",
        tool_call_id=tool_call_id,
        output=output,
        stop_reason=stop_reason,
        images=images,
        details=details,
        synthetic=synthetic,
    )
    return OmniMessage(payload=payload)


def event(payload: p.Payload) -> OmniMessage:
    """Wrap an event payload, stamped with the current time."""
    return OmniMessage(payload=payload)
