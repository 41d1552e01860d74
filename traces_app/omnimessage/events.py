"""The events of an OmniMessage stream: one frozen dataclass per kind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from traces_app.omnimessage.payload_base import Json, Payload, StopReason


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
    """Tokens: total = cache_read + cache_write + output.

    `input` is the part of `cache_write` that was written to no cache. The protocol's
    object does not have it: it stands beside, see `TokenUsage.input_tokens`, and two
    usages that differ in nothing else are equal.
    """

    cache_read: int = 0
    cache_write: int = 0
    output: int = 0
    total: int = 0
    input: int = field(default=0, compare=False)

    def __add__(self, other: Usage) -> Usage:
        """Return the sum; `total` follows from its parts."""
        cache_read = self.cache_read + other.cache_read
        cache_write = self.cache_write + other.cache_write
        output = self.output + other.output
        return Usage(
            cache_read=cache_read,
            cache_write=cache_write,
            output=output,
            total=cache_read + cache_write + output,
            input=self.input + other.input,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenUsage(Payload):
    KIND: ClassVar[str] = "token_usage"
    session: Usage  # accumulated over the session, compaction included
    request: Usage
    # Set when a tool of the call asked another model (PROVIDER/ID) than the session's.
    tool_call_id: str | None = None
    model: str | None = None
    input_tokens: int = 0  # of `request.cache_write`: written to no cache
    request_usd: float | None = None  # None: the model has no price
    session_usd: float | None = None  # accumulated like `session`


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
