"""What a crash left open in a Trace, and the messages that close it.

The same messages come first in every run, so that one that follows a failed record
or a restart without recovery sends valid pairs too.
"""

from __future__ import annotations

from collections.abc import Callable

from sessions_app.engine.history import History
from sessions_app.engine.messages import call_id
from sessions_app.engine.outputs import (
    denied_output,
    lost_output,
    never_started_output,
)
from sessions_app.engine.tool_run import Tools, digest_of
from traces_app.omnimessage import OmniMessage, StopReason, event
from traces_app.omnimessage import payloads as p

# Makes the decision `deny`, source `restart`, for a call nobody decided.
Deny = Callable[[OmniMessage], p.ApprovalDecision]


def restart_denial(tools: Tools, call: OmniMessage) -> p.ApprovalDecision:
    """Return the decision on a call that a crash left undecided for good."""
    return p.ApprovalDecision(
        decision="deny",
        tool_call_id=call_id(call),
        source="restart",
        via="auto",
        arguments_sha256=digest_of(tools, call),
    )


def settlement(history: History, *, deny: Deny) -> list[OmniMessage]:
    """Return the messages to record, in order; none when nothing was cut.

    Undecided calls of a completed request are left alone: a person may still
    decide them. Nothing here is ever run.
    """
    messages = []
    if history.is_request_open:
        messages.append(event(p.RequestEnd(status=StopReason.ABORTED)))
    if history.is_compacting:
        messages.append(event(p.CompactionEnd(status=StopReason.FAILED)))
    for call in history.orphaned_calls:
        messages += _closing(history, call, deny)
    for call in history.open_calls:
        if call_id(call) in history.decided:
            messages += _closing(history, call, deny)
    return messages


def _closing(history: History, call: OmniMessage, deny: Deny) -> list[OmniMessage]:
    if call_id(call) in history.started:
        return [lost_output(call)]
    decision = history.decided.get(call_id(call))
    if decision is None:
        decision = deny(call)
        return [event(decision), denied_output(call, decision)]
    if decision.decision == "deny":
        return [denied_output(call, decision)]
    return [never_started_output(call)]
