"""The outputs the product writes itself, for calls that no tool answered."""

from __future__ import annotations

from sessions_app.engine.messages import call_id
from traces_app.omnimessage import OmniMessage, StopReason, tool_call_output
from traces_app.omnimessage import payloads as p

DENIED = "Tool call denied by user."
NOBODY_DECIDED = (
    "nobody decided in time; this is not a technical fault, do not try another way."
)
_FIXED = {
    "interrupt": "[interrupted: tool aborted by user]",
    "restart": "[not run: the server restarted before this call was decided]",
    "stream": "[not run: the model's answer was cut off before this call was decided]",
}


def denied_output(call: OmniMessage, event: p.ApprovalDecision) -> OmniMessage:
    """Return the output of a call that was not allowed; its first line says why."""
    text = _FIXED.get(event.source)
    if text is None:
        reason = _reason(event)
        text = f"{DENIED}\nReason: {reason}" if reason else DENIED
    return aborted_output(call, text, because="denied")


def interrupted_output(call: OmniMessage) -> OmniMessage:
    """Return the output of a call whose run was stopped before it started."""
    return aborted_output(call, _FIXED["interrupt"], because="interrupt")


def changed_output(call: OmniMessage) -> OmniMessage:
    """Return the output of a call that is no longer what was approved."""
    text = "[not run: the call differs from what was approved]"
    return aborted_output(call, text, because="arguments_changed")


def never_started_output(call: OmniMessage) -> OmniMessage:
    """Return the output of an approved call the server did not get to start."""
    text = "[not run: the server restarted before it started]"
    return aborted_output(call, text, because="restart")


def lost_output(call: OmniMessage) -> OmniMessage:
    """Return the output of a call that was running when the server stopped."""
    text = (
        "[interrupted: the server stopped while this call was running; "
        "whether it had side effects is unknown, check before doing it again]"
    )
    return aborted_output(call, text, because="restart")


def aborted_output(call: OmniMessage, text: str, *, because: str) -> OmniMessage:
    """Return an `aborted` output in the product's own words."""
    return tool_call_output(call_id(call), text, StopReason.ABORTED, synthetic=because)


def _reason(event: p.ApprovalDecision) -> str | None:
    if event.source == "expiry":
        return NOBODY_DECIDED
    if event.source == "rule" and event.rule:
        return f"rule {event.rule}" + (f": {event.reason}" if event.reason else "")
    return event.reason
