"""The payloads of an OmniMessage: one frozen dataclass per kind, all kinds in reach."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from traces_app.omnimessage.events import (
    EVENT_PAYLOADS,
    Abort,
    ApprovalDecision,
    ApprovalRequested,
    CompactionBegin,
    CompactionEnd,
    ConfigInForce,
    Damaged,
    DecisionSource,
    DecisionVia,
    ModeChanged,
    ProcessEvicted,
    Recovered,
    RequestBegin,
    RequestEnd,
    Subagent,
    TokenUsage,
    ToolListReady,
    ToolStarted,
    Usage,
)
from traces_app.omnimessage.payload_base import (
    NO_EXTRA,
    EventType,
    Json,
    Payload,
    Role,
    StopReason,
    no_extra,
)

__all__ = [
    "Abort",
    "ApprovalDecision",
    "ApprovalRequested",
    "CompactionBegin",
    "CompactionEnd",
    "ConfigInForce",
    "Damaged",
    "DecisionSource",
    "DecisionVia",
    "EVENT_PAYLOADS",
    "EventType",
    "ImageUrl",
    "InlineData",
    "InlineThinking",
    "Json",
    "MODEL_PAYLOADS",
    "ModeChanged",
    "ModelPayload",
    "NO_EXTRA",
    "Partial",
    "PartialText",
    "PartialThinking",
    "PartialToolCall",
    "PartialToolCallOutput",
    "Payload",
    "ProcessEvicted",
    "Recovered",
    "RequestBegin",
    "RequestEnd",
    "Role",
    "SessionMeta",
    "StopReason",
    "Subagent",
    "Text",
    "Thinking",
    "TokenUsage",
    "ToolCall",
    "ToolCallOutput",
    "ToolListReady",
    "ToolStarted",
    "Usage",
    "no_extra",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionMeta(Payload):
    KIND: ClassVar[str] = "session_meta"
    session_id: str
    provider: str
    model_id: str
    model_context_window: int
    system_prompt: str
    workspace: str
    source: str | None = None  # "subagent" on a child session


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelPayload(Payload):
    """A part of the conversation; `fidelity` is opaque and goes back unchanged."""

    role: Role
    fidelity: Json = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Text(ModelPayload):
    KIND: ClassVar[str] = "text"
    text: str
    # None: typed by a person or written by the model. Else why the product added
    # it: "retry", "carry_over", "recovery", "processes", "notice", "summary".
    synthetic: str | None = None
    author: str | None = None  # username of the person who typed it


@dataclass(frozen=True, slots=True, kw_only=True)
class Thinking(ModelPayload):
    KIND: ClassVar[str] = "thinking"
    thinking: str


@dataclass(frozen=True, slots=True, kw_only=True)
class InlineThinking(ModelPayload):
    KIND: ClassVar[str] = "inline_thinking"
    data: str  # base64
    mime_type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class InlineData(ModelPayload):
    KIND: ClassVar[str] = "inline_data"
    data: str  # base64
    mime_type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageUrl(ModelPayload):
    KIND: ClassVar[str] = "image_url"
    image_url: str  # http(s) or data: URL


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall(ModelPayload):
    KIND: ClassVar[str] = "tool_call"
    tool_call_id: str
    name: str
    arguments: str  # JSON text, exactly as the model wrote it


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCallOutput(ModelPayload):
    KIND: ClassVar[str] = "tool_call_output"
    tool_call_id: str
    output: str
    stop_reason: StopReason
    images: tuple[str, ...] = ()  # data: URLs
    details: Mapping[str, Json] = field(default_factory=no_extra)
    synthetic: str | None = None  # why the product wrote it instead of a tool


@dataclass(frozen=True, slots=True, kw_only=True)
class Partial(Payload):
    """A piece of a message that is still streaming; never recorded."""

    role: Role
    event_type: EventType


@dataclass(frozen=True, slots=True, kw_only=True)
class PartialText(Partial):
    KIND: ClassVar[str] = "partial_text"
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartialThinking(Partial):
    KIND: ClassVar[str] = "partial_thinking"
    thinking: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartialToolCall(Partial):
    KIND: ClassVar[str] = "partial_tool_call"
    tool_call_id: str
    name: str = ""
    arguments: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartialToolCallOutput(Partial):
    KIND: ClassVar[str] = "partial_tool_call_output"
    tool_call_id: str
    output: str = ""
    images: tuple[str, ...] = ()
    stop_reason: StopReason | None = None  # on "stop" only


MODEL_PAYLOADS: tuple[type[Payload], ...] = (
    Text,
    Thinking,
    InlineThinking,
    InlineData,
    ImageUrl,
    ToolCall,
    ToolCallOutput,
    PartialText,
    PartialThinking,
    PartialToolCall,
    PartialToolCallOutput,
)
