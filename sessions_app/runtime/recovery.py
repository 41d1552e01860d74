"""What happens to the sessions of a process that is gone. Synchronous, idempotent.

Per session of a dead owner, in one transaction: 1. decided requests get the event
they lack; 2. `settlement` ends the request that was cut and closes the calls nobody
can decide any more; 3. undecided calls of a complete request keep their card, or get
one if the mode asks; 4. the status says whether a card is left. Nothing runs, nothing
is asked of a model. The owner's leftover processes are ended before.
"""

from __future__ import annotations

import logging
from typing import cast

from django.db import transaction
from django.utils import timezone

from sessions_app.engine.history import History
from sessions_app.engine.outputs import denied_output
from sessions_app.engine.settlement import settlement
from sessions_app.environment.process_group import sweep
from sessions_app.models import (
    ApprovalRequest,
    CommandSession,
    OutputChunk,
    Owner,
    ProcessState,
    Session,
)
from sessions_app.runtime import configs, family, policy
from sessions_app.runtime.approvals import asked_event, decision_event, new_request
from sessions_app.runtime.items import is_text_item
from traces_app import integrity, reader, writer
from traces_app.omnimessage import OmniMessage, event
from traces_app.omnimessage.payloads import ApprovalDecision, Recovered, ToolCall

logger = logging.getLogger(__name__)


def recover_owner(owner: Owner) -> None:
    """End the owner's processes and put its sessions in order."""
    killed = sweep(owner.pk)
    if killed:
        logger.warning("Ended %d leftover processes of %s", len(killed), owner.pk)
    CommandSession.objects.filter(owner=owner, state=ProcessState.RUNNING).update(
        state=ProcessState.LOST, ended_at=timezone.now()
    )
    family.lose_children(owner.pk)
    sessions = Session.objects.select_related("parent", "project", "agent")
    for session in sessions.filter(owner=owner).order_by("id"):
        try:
            recover_session(session)
        except Exception:
            # One broken session must not keep the server from starting.
            logger.exception("Recovery of %s failed", session.pk)


@transaction.atomic
def recover_session(session: Session) -> None:
    """Settle what the dead process left open in one session."""
    case = _Case(session)
    case.settle()
    half = OutputChunk.objects.filter(session=session)
    items = set(half.values_list("item", flat=True))
    half.filter(item__in=[item for item in items if is_text_item(item)]).delete()
    if case.messages:
        case.add(event(Recovered(what=case.what())))
        writer.append(session.trace_id, case.messages)
    if case.messages or session.status != "idle":
        integrity.write_checkpoint(session.trace_id)
    Session.objects.filter(pk=session.pk).update(owner=None)
    family.show_recovered(session)


class _Case:
    """The open ends of one session and the messages that close them."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.messages: list[OmniMessage] = []
        self._history = History.from_messages(
            stored.message for stored in reader.iter_events(session.trace_id)
        )
        self._cut = self._history.is_request_open

    def add(self, message: OmniMessage) -> None:
        """Put one more message on record, and into the picture."""
        self.messages.append(message)
        self._history.feed(message)

    def what(self) -> str:
        """Say in words what was settled."""
        outputs = sum(m.kind == "tool_call_output" for m in self.messages)
        parts = ["a request to the model was cut off"] if self._cut else []
        if outputs:
            parts.append(f"{outputs} calls were closed")
        return f"The server restarted: {', '.join(parts) or 'nothing was lost'}."

    def settle(self) -> None:
        """Write the decisions, the end of the request and the outputs missing."""
        history = self._history
        for call in [*history.orphaned_calls, *history.open_calls]:
            self._write_decision(cast("ToolCall", call.payload))
        for message in settlement(history, deny=self._deny):
            self.add(message)
        for call in history.open_calls:
            self._keep_card(call)

    def _row(self, call: ToolCall) -> ApprovalRequest | None:
        rows = ApprovalRequest.objects.filter(
            session=self.session, tool_call_id=call.tool_call_id
        )
        return rows.order_by("-attempt").first()

    def _write_decision(self, call: ToolCall) -> None:
        """Put a person's answer on record that only the row knows."""
        row = self._row(call)
        if row is None or row.decision is None or row.decision_recorded:
            return
        self.add(event(self._event_of(row)))
        ApprovalRequest.objects.filter(pk=row.pk).update(decision_recorded=True)

    def _event_of(self, row: ApprovalRequest) -> ApprovalDecision:
        version = configs.config_version(self.session.agent)
        mode = family.mode_source(self.session).approval_mode
        return decision_event(row, mode=mode, config_version=version)

    def _keep_card(self, call: OmniMessage) -> None:
        """Leave a decidable card behind; without one the mode says what happens."""
        payload = cast("ToolCall", call.payload)
        if self._row(payload) is not None:
            return
        tools = {t.name: t for t in configs.current_agent(self.session.agent)[0].tools}
        tool = tools.get(payload.name)
        permission = tool.permission if tool else None
        outside = policy.outside_host(self.session, payload.name, payload.arguments)
        mode = family.mode_source(self.session).approval_mode
        if policy.verdict(mode, permission, outside=outside) == "ask":
            row = new_request(
                self.session, payload, permission=permission, outside=outside
            )
            row.save(force_insert=True)
            self.add(asked_event(row))
            return
        decided = self._deny(call)
        self.add(event(decided))
        self.add(denied_output(call, decided))

    def _deny(self, call: OmniMessage) -> ApprovalDecision:
        payload = cast("ToolCall", call.payload)
        row = self._row(payload)
        is_new = row is None
        if row is None:
            row = new_request(self.session, payload, permission=None)
            row.requested_at = timezone.now()
        row.decision, row.source, row.via = "deny", "restart", "auto"
        row.decided_at, row.decision_recorded = timezone.now(), True
        if not is_new:
            row.save()
        return self._event_of(row)
