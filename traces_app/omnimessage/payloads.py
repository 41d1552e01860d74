"""The payloads of an OmniMessage: one frozen dataclass per kind, and the enums they share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Any, ClassVar, Literal

Role = Literal["user", "assistant"]
EventType = Literal["start", "delta", "stop"]
Json = Any  # a value as json.loads returns it
NO_EXTRA: Mapping[str, Json] = MappingProxyType({})


def no_extra() -> Mapping[str, Json]:
    """Return the shared empty mapping: a dataclass default must be a factory."""
    return NO_EXTRA


class StopReason(StrEnum):
    """How an executed call, or a request to a model, came to its end."""

    COMPLETED = "completed"
    FAILED = "failed"
    ABORTED = "aborted"
    TIMEOUT = "timeout"
    MALFORMED = "malformed"  # requests only
    AUTH = "auth"  # requests only


@dataclass(frozen=True, slots=True, kw_only=True)
class Payload:
    """Base of every payload: `extra` holds fields this version does not know."""

    KIND: ClassVar[str] = ""
    extra: Mapping[str, Json] = field(default_factory=no_extra)


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


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestBegin(Payload):
    KIND: ClassVar[str] = "request_begin"
    attempt: int = 1  # 1 for the first attempt at this input


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestEnd(Payload):
    KIND: ClassVar[str] = "request_end"
    status: StopReason
    attempt: int | None = None
    retry_in_ms: int | None = None  # set when another attempt follows
    error_message: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens: total = cache_read + cache_write + output."""

    cache_read: int = 0
    cache_write: int = 0
    output: int = 0
    total: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenUsage(Payload):
    KIND: ClassVar[str] = "token_usage"
    session: Usage  # accumulated over the session, compaction included
    request: Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class Abort(Payload):
    KIND: ClassVar[str] = "abort"
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionBegin(Payload):
    KIND: ClassVar[str] = "compaction_begin"
    reason: str
    mode: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionEnd(Payload):
    KIND: ClassVar[str] = "compaction_end"
    status: StopReason


@dataclass(frozen=True, slots=True, kw_only=True)
class Subagent(Payload):
    KIND: ClassVar[str] = "subagent"
    session_id: str
    tool_call_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolListReady(Payload):
    KIND: ClassVar[str] = "tool_list_ready"
    tools: tuple[Mapping[str, Json], ...]


DecisionSource = Literal[
    "mode", "user", "rule", "policy", "expiry", "interrupt", "restart", "stream"
]
DecisionVia = Literal["button", "key", "form", "batch", "api", "cli", "auto"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalDecision(Payload):
    KIND: ClassVar[str] = "approval_decision"
    decision: Literal["allow", "deny"]
    tool_call_id: str
    attempt: int = 1
    source: DecisionSource
    via: DecisionVia
    mode: str | None = None
    decided_by: str | None = None  # username, from the login or token
    reason: str | None = None
    rule: str | None = None
    config_version: Mapping[str, int] | None = None  # {"project": n, "agent": m}
    waited_ms: int = 0
    arguments_sha256: str
    shown_sha256: str | None = None
    executed_sha256: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalRequested(Payload):
    KIND: ClassVar[str] = "approval_request"
    tool_call_id: str
    attempt: int = 1
    arguments_sha256: str
    workdir: str | None
    asked_because: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolStarted(Payload):
    KIND: ClassVar[str] = "tool_started"
    tool_call_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ModeChanged(Payload):
    """A new approval mode of the session; JSON names the fields `from`, `to`, `by`."""

    KIND: ClassVar[str] = "mode_changed"
    from_mode: str
    to_mode: str
    by: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigInForce(Payload):
    KIND: ClassVar[str] = "config_in_force"
    version: Mapping[str, int]  # {"project": n, "agent": m}


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovered(Payload):
    KIND: ClassVar[str] = "recovered"
    what: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessEvicted(Payload):
    """A running command session was ended to make room for a newer one."""

    KIND: ClassVar[str] = "process_evicted"
    process_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Damaged(Payload):
    """Stands in an imported Trace for a line that could not be read."""

    KIND: ClassVar[str] = "damaged"
    line: int  # 1 for the first line of the file
    reason: str


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
EVENT_PAYLOADS: tuple[type[Payload], ...] = (
    RequestBegin,
    RequestEnd,
    TokenUsage,
    Abort,
    CompactionBegin,
    CompactionEnd,
    Subagent,
    ToolListReady,
    ApprovalDecision,
    ApprovalRequested,
    ToolStarted,
    ModeChanged,
    ConfigInForce,
    Recovered,
    ProcessEvicted,
    Damaged,
)
