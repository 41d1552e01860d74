"""The shapes of the API: what it takes, strictly, and what it gives."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from ninja import Schema
from pydantic import AfterValidator, ConfigDict, Field

MAX_SEQ = 2**63 - 1


def _storable(text: str) -> str:
    if "\x00" in text:
        raise ValueError("must not hold a NUL character")
    if not text.isascii() and any("\ud800" <= c <= "\udfff" for c in text):
        raise ValueError("must not hold half a surrogate pair")
    return text


CleanText = Annotated[str, AfterValidator(_storable)]
Mode = Literal["deny-all", "always-ask", "read-only", "allow-all"]
Level = Literal["none", "low", "medium", "high", "xhigh", "max"]


class Input(Schema):
    """A body: types as they are, no unknown keys (a misspelt one would be ignored)."""

    model_config = ConfigDict(strict=True, extra="forbid")


class SessionIn(Input):
    """What a new session shall be; left out: the project's default."""

    agent: CleanText | None = None
    model: Annotated[CleanText | None, Field(description="PROVIDER/ID")] = None
    thinking_level: Level | None = None
    workspace: Annotated[
        CleanText | None,
        Field(description="Below an allowed root; left out: a new empty folder"),
    ] = None
    approval_mode: Mode | None = None
    title: Annotated[CleanText, Field(max_length=200)] = ""


class SessionChange(Input):
    """What shall be different; left out: stays."""

    approval_mode: Mode = "always-ask"
    title: Annotated[CleanText, Field(max_length=200)] = ""
    archived: bool = False


class TaskIn(Input):
    """A message to the agent."""

    text: CleanText
    images: Annotated[
        list[CleanText],
        Field(
            description="data: or http(s) URLs of PNG, JPEG, GIF or WebP images, "
            "5 MB each, 20 MB together",
            max_length=20,
        ),
    ] = []
    queue: Annotated[bool, Field(description="wait for a running task's turn")] = False


class DecisionIn(Input):
    """The answer to one pending call."""

    decision: Literal["allow", "deny"]
    reason: Annotated[CleanText, Field(description="told to the model")] = ""
    arguments_sha256: Annotated[
        str | None, Field(description="digest of what was shown; another one: 409")
    ] = None


class ConfigIn(Input):
    """A new version of a document."""

    yaml: str
    base_version: Annotated[int, Field(description="the version it was made from")]
    reason: Annotated[CleanText, Field(max_length=500)] = ""


class ErrorBody(Schema):
    """What went wrong."""

    code: str
    message: str
    details: Any = {}


class ErrorOut(Schema):
    """The shape of every error."""

    error: ErrorBody


class SessionOut(Schema):
    """A session."""

    id: str
    project: str
    agent: str
    provider: str
    model_id: str
    thinking_level: str | None
    workspace: str
    approval_mode: str
    status: Literal["idle", "running", "waiting"]
    title: str
    created_at: datetime
    parent: Annotated[str | None, Field(description="of a subagent's session")]
    archived: bool


class UsageOut(Schema):
    """Tokens of a session and its subagents."""

    cache_read: int
    cache_write: int
    output: int
    total: int


class SessionDetailOut(SessionOut):
    """A session with what it used, subagents included."""

    usage: UsageOut
    cost: Annotated[
        float | None, Field(description="US dollars; null: no model had a price")
    ]


class SessionPage(Schema):
    """Sessions, newest first."""

    sessions: list[SessionOut]
    next: Annotated[str | None, Field(description="give it as `after`")]


class ApprovalOut(Schema):
    """A question to a person about one call, and the answer if there is one."""

    session: Annotated[str, Field(description="the session that owns the call")]
    tool_call_id: str
    attempt: int
    name: str
    arguments: Annotated[str, Field(description="JSON text as the model wrote it")]
    workdir: str | None
    permission: Literal["r", "rw"] | None
    origin: list[str]
    arguments_sha256: str
    asked_because: str
    requested_at: datetime
    status: Literal["pending", "decided"]
    decision: Literal["allow", "deny"] | None
    source: str | None
    via: str | None
    decided_by: str | None
    decided_at: datetime | None
    reason: str | None


class EventOut(Schema):
    """An event of the Trace."""

    seq: int
    segment: int
    hash: str
    message: Annotated[Any, Field(description="an OmniMessage")]


class EventPage(Schema):
    """Events, oldest first."""

    events: list[EventOut]
    next: Annotated[int | None, Field(description="give it as `after`")]


class ProcessOut(Schema):
    """A running command, or one that ran."""

    model_config = ConfigDict(extra="allow")

    process_id: str | None
    pid: int
    cmd: str
    cwd: str
    started_at: Any
    running: bool
    exit_code: int | None


class ConfigOut(Schema):
    """A document in force."""

    version: int
    yaml: str
    author: str | None
    reason: str
    created_at: datetime | None


class TraceOut(Schema):
    """An imported record."""

    session_id: str
    events: int
    damaged: int
