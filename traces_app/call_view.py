"""A tool call as a reader sees it: what was asked, decided, run and printed."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from traces_app.arguments import Arguments, read_arguments
from traces_app.decision_view import DecisionView, view_decision
from traces_app.figures import duration, number
from traces_app.omnimessage import StopReason
from traces_app.omnimessage import payloads as p
from traces_app.output_text import FoldedText, fold
from traces_app.pictures import Picture, pictures_of
from traces_app.stored_event import StoredEvent

_PLAIN_KEY = re.compile(r"[A-Za-z0-9_-]{1,80}")


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputView:
    """What a call printed; `facts` stand in the head of its card."""

    seq: int
    text: FoldedText
    pictures: tuple[Picture, ...] = ()
    saw: str = ""  # what the model saw, when that was less
    download: str = ""  # address of the full text


@dataclass(frozen=True, slots=True, kw_only=True)
class CallView:
    """One call; `state` is deciding, waiting, running, denied or a stop reason."""

    template: ClassVar[str] = "traces_app/partials/call.html"
    seq: int
    key: str  # of element ids
    tool_call_id: str
    name: str
    arguments: Arguments
    state: str
    icon: str
    tone: str
    facts: tuple[str, ...]
    started_at: str = ""  # while it runs
    decision: DecisionView | None = None
    output: OutputView | None = None
    card: Any = None  # what the product shows while it waits
    item: str = ""  # what streams into it, and from which character on
    start: int = 0
    streamed: str = ""
    offset: int = 0  # one past the last character of `streamed`
    nested: tuple[Any, ...] = ()  # what the product shows below: subagents
    is_open: bool = True


def call_key(tool_call_id: str) -> str:
    """Return the id as part of an element's id: what is unfit becomes a digest."""
    if _PLAIN_KEY.fullmatch(tool_call_id):
        return tool_call_id
    digest = hashlib.sha256(tool_call_id.encode(errors="replace")).hexdigest()
    return f"x{digest[:20]}"


def view_call(
    events: Sequence[StoredEvent], *, output: OutputView | None = None, **more: Any
) -> CallView:
    """Return the view of a call from its events, the `tool_call` among them.

    `output` replaces the view made from the event alone; `more` sets further fields.
    """
    found = _newest(events)
    call = found["tool_call"].message.payload
    assert isinstance(call, p.ToolCall)
    decided = found.get("approval_decision")
    ended = found.get("tool_call_output")
    started = found.get("tool_started")
    if output is None and ended is not None:
        output = view_output(ended)
    state = _state(found)
    icon, tone = _mark(state, _details(ended))
    return CallView(
        seq=found["tool_call"].seq,
        key=call_key(call.tool_call_id),
        tool_call_id=call.tool_call_id,
        name=call.name,
        arguments=read_arguments(call.name, call.arguments),
        state=state,
        icon=icon,
        tone=tone,
        facts=_facts(state, ended),
        started_at=started.message.timestamp if started else "",
        decision=view_decision(decided) if decided else None,
        output=output,
        **more,
    )


def view_output(
    event: StoredEvent, *, tail: str = "", download: str = ""
) -> OutputView:
    """Return the view of an output; `tail` shows the end of a text that was cut."""
    payload = event.message.payload
    assert isinstance(payload, p.ToolCallOutput)
    text = fold(payload.output)
    saw = ""
    if payload.details.get("truncated"):
        kept = number(len(payload.output))
        saw = f"The model saw {kept} characters of {_produced(payload.details)}."
        if tail:
            gap = _between(payload.details, len(text.head) + len(tail))
            text = FoldedText(head=text.head, tail=tail, gap=gap)
    return OutputView(
        seq=event.seq,
        text=text,
        pictures=pictures_of(payload),
        saw=saw,
        download=download,
    )


def _newest(events: Iterable[StoredEvent]) -> dict[str, StoredEvent]:
    return {event.kind: event for event in events}


def _details(ended: StoredEvent | None) -> Mapping[str, Any]:
    return getattr(ended.message.payload, "details", {}) if ended else {}


def _between(details: Mapping[str, Any], shown: int) -> str:
    produced = details.get("output_chars")
    left_out = produced - shown if isinstance(produced, int) else 0
    return f"{left_out:,} characters between" if left_out > 0 else "…"


def _produced(details: Mapping[str, Any]) -> str:
    produced = details.get("output_chars")
    return number(produced) if isinstance(produced, int) else "more"


def _state(found: Mapping[str, StoredEvent]) -> str:
    decision = found.get("approval_decision")
    if decision and getattr(decision.message.payload, "decision", "") == "deny":
        return "denied"
    if ended := found.get("tool_call_output"):
        return str(getattr(ended.message.payload, "stop_reason", "completed"))
    if "tool_started" in found:
        return "running"
    if decision:
        return "starting"
    return "waiting" if "approval_request" in found else "deciding"


def _mark(state: str, details: Mapping[str, Any]) -> tuple[str, str]:
    """Return icon and tone; a command's own exit code is information, no fault."""
    if state == "failed" and details.get("exit_code"):
        return "terminal", ""
    if details.get("running"):
        return "terminal", "glacier"
    return {
        "completed": ("check", "moss"),
        "failed": ("warning", "krill"),
        "timeout": ("clock", "krill"),
        "aborted": ("stop", ""),
        "denied": ("denied", "krill"),
        "running": ("run", "glacier"),
        "starting": ("run", "glacier"),
        "waiting": ("beak", "beak"),
    }.get(state, ("clock", ""))


def _facts(state: str, ended: StoredEvent | None) -> tuple[str, ...]:
    if state == "denied":
        return ("denied",)
    if ended is None:
        return ()
    payload = ended.message.payload
    assert isinstance(payload, p.ToolCallOutput)
    details = payload.details
    facts = [_ending(state, details)]
    if isinstance(took := details.get("duration_ms"), int | float):
        facts.append(duration(took))
    produced = details.get("output_chars")
    if isinstance(produced, int) and produced:
        facts.append(f"{number(produced)} chars")
    return tuple(fact for fact in facts if fact)


def _ending(state: str, details: Mapping[str, Any]) -> str:
    if details.get("running"):
        return "runs on"
    if signal := details.get("signal"):
        return str(signal)
    if "exit_code" in details and details["exit_code"] is not None:
        return f"exit {details['exit_code']}"
    return {
        StopReason.FAILED: "failed",
        StopReason.TIMEOUT: "timed out",
        StopReason.ABORTED: "stopped",
    }.get(StopReason(state), "")
