"""What happens to the sessions of a process that is gone. Synchronous, idempotent.

Per session of a dead owner, in one transaction: 1. decided requests get the event
they lack; 2. a request to the model that began is ended; 3. calls without output
are closed as far as nobody can decide them any more; 4. cards that can still be
decided stay; 5. the status says whether one is left. Nothing runs, nothing is asked
of a model. Its leftover processes are ended before.
"""

from __future__ import annotations

import logging
from typing import cast

from django.db import transaction
from django.utils import timezone

from sessions_app.engine import History
from sessions_app.engine.digest import arguments_sha256
from sessions_app.engine.tool_calls import denied_output
from sessions_app.environment.process_group import sweep
from sessions_app.models import (
    ApprovalRequest,
    CommandSession,
    OutputChunk,
    Owner,
    ProcessState,
    Session,
)
from sessions_app.runtime import policy
from sessions_app.runtime.approvals import decision_event
from sessions_app.runtime.items import is_text_item
from traces_app import integrity, reader, writer
from traces_app.omnimessage import OmniMessage, StopReason, event, tool_call_output
from traces_app.omnimessage.payloads import (
    ApprovalDecision,
    Recovered,
    RequestBegin,
    RequestEnd,
    ToolCall,
)

logger = logging.getLogger(__name__)

STARTED = (
    "[interrupted: the server restarted while this ran; "
    "its side effects are unknown]"
)
NOT_STARTED = "[not run: the server restarted before it started]"


def recover_owner(owner: Owner) -> None:
    """End the owner's processes and put its sessions in order."""
    killed = sweep(owner.pk)
    if killed:
        logger.warning("Ended %d leftover processes of %s", len(killed), owner.pk)
    CommandSession.objects.filter(owner=owner, state=ProcessState.RUNNING).update(
        state=ProcessState.LOST, ended_at=timezone.now()
    )
    for session in Session.objects.filter(owner=owner).order_by("id"):
        try:
            recover_session(session)
        except Exception:
            # One broken session must not keep the server from starting.
            logger.exception("Recovery of %s failed", session.pk)


@transaction.atomic
def recover_session(session: Session) -> None:
    """Settle what the dead process left open in one session."""
    case = _Case(session)
    if case.is_open:
        case.settle()
    _forget_half_texts(session)
    pending = ApprovalRequest.objects.filter(session=session, decision=None).exists()
    status = "waiting" if pending else "idle"
    if case.messages:
        case.add(event(Recovered(what=case.what())))
        writer.append(session.trace_id, case.messages)
    if case.messages or session.status != "idle":
        integrity.write_checkpoint(session.trace_id)
    Session.objects.filter(pk=session.pk).update(status=status, owner=None)


class _Case:
    """The open ends of one session and the messages that close them."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.messages: list[OmniMessage] = []
        self._events = [e.message for e in reader.iter_events(session.trace_id)]
        self._history = History.from_messages(self._events)
        self._counts = {"closed": 0, "cut": 0}

    @property
    def is_open(self) -> bool:
        """Return whether anything of the session may need settling."""
        return self.session.status != "idle" or bool(self._open_calls())

    def add(self, message: OmniMessage) -> None:
        self.messages.append(message)

    def what(self) -> str:
        """Say in words what was settled."""
        parts = []
        if self._counts["cut"]:
            parts.append("a request to the model was cut off")
        if self._counts["closed"]:
            parts.append(f"{self._counts['closed']} calls were closed")
        return "The server restarted: " + (", ".join(parts) or "nothing was lost") + "."

    def settle(self) -> None:
        """Write the decisions, the end of the request and the outputs missing."""
        is_cut = self._is_request_open()
        calls = self._open_calls()
        for call in calls:
            self._write_decision(call)
        if is_cut:
            self._counts["cut"] += 1
            end = RequestEnd(
                status=StopReason.ABORTED, error_message="the server restarted"
            )
            self.add(event(end))
        for call in calls:
            self._close(call, is_cut=is_cut)

    def _open_calls(self) -> list[ToolCall]:
        calls: dict[str, ToolCall] = {}
        for message in self._events:
            payload = message.payload
            if isinstance(payload, ToolCall):
                calls[payload.tool_call_id] = payload
            elif payload.KIND == "tool_call_output":
                calls.pop(payload.tool_call_id, None)  # type: ignore[attr-defined]
        return list(calls.values())

    def _is_request_open(self) -> bool:
        for message in reversed(self._events):
            if isinstance(message.payload, RequestEnd):
                return False
            if isinstance(message.payload, RequestBegin):
                return True
        return False

    def _row(self, call: ToolCall) -> ApprovalRequest | None:
        rows = ApprovalRequest.objects.filter(
            session=self.session, tool_call_id=call.tool_call_id
        )
        return rows.order_by("-attempt").first()

    def _write_decision(self, call: ToolCall) -> None:
        """Put a person's answer on record that only the row knows."""
        row = self._row(call)
        if call.tool_call_id in self._history.decided or row is None:
            return
        if row.decision is not None:
            self._decided(
                decision_event(row, mode=self.session.approval_mode, config_version=None)
            )
            ApprovalRequest.objects.filter(pk=row.pk).update(decision_recorded=True)

    def _decided(self, decided: ApprovalDecision) -> None:
        message = event(decided)
        self.add(message)
        self._history.feed(message)

    def _close(self, call: ToolCall, *, is_cut: bool) -> None:
        decided = self._history.decided.get(call.tool_call_id)
        if call.tool_call_id in self._history.started:
            self._output(call, STARTED)
        elif decided is not None and decided.decision == "allow":
            self._output(call, NOT_STARTED)
        elif decided is not None:
            self.add(denied_output(call.tool_call_id, decided))
            self._counts["closed"] += 1
        elif is_cut or not self._can_wait(call):
            self._deny(call)

    def _can_wait(self, call: ToolCall) -> bool:
        """Keep or make the pending card of a call whose request was complete."""
        if self._row(call) is not None:
            return True
        # The row is written when the turn comes back: its desk asks by the mode.
        # Only a mode that asks leaves something to wait for.
        return policy.verdict(self.session.approval_mode, None) == "ask" and bool(
            self._make_card(call)
        )

    def _make_card(self, call: ToolCall) -> ApprovalRequest:
        workdir = self.session.workspace if call.name == "exec_command" else None
        return ApprovalRequest.objects.create(
            session=self.session,
            tool_call_id=call.tool_call_id,
            name=call.name,
            arguments=call.arguments,
            workdir=workdir,
            arguments_sha256=arguments_sha256(call.name, workdir, call.arguments),
            asked_because=policy.asked_because(self.session, None),
        )

    def _deny(self, call: ToolCall) -> None:
        row = self._row(call)
        now = timezone.now()
        if row is None:
            decided = ApprovalDecision(
                decision="deny",
                tool_call_id=call.tool_call_id,
                source="restart",
                via="auto",
                mode=self.session.approval_mode,
                arguments_sha256=arguments_sha256(call.name, None, call.arguments),
            )
        else:
            row.decision, row.source, row.via = "deny", "restart", "auto"
            row.decided_at, row.decision_recorded = now, True
            row.save()
            decided = decision_event(
                row, mode=self.session.approval_mode, config_version=None
            )
        self._decided(decided)
        self.add(denied_output(call.tool_call_id, decided))
        self._counts["closed"] += 1

    def _output(self, call: ToolCall, text: str) -> None:
        self.add(
            tool_call_output(
                call.tool_call_id, text, StopReason.ABORTED, synthetic="recovery"
            )
        )
        self._counts["closed"] += 1


def _forget_half_texts(session: Session) -> None:
    """Drop streamed text whose message was never complete."""
    items = OutputChunk.objects.filter(session=session).values_list("item", flat=True)
    half = [item for item in set(items) if is_text_item(cast("str", item))]
    OutputChunk.objects.filter(session=session, item__in=half).delete()
