"""The approval desk of one live session: rows first, then people, then an answer.

Flow of `decide`: 1. In call order, the mode is read from the database. 2. A mode
that decides is answered at once. 3. Otherwise the request row and its
`approval_request` event are written in one transaction; a turn that came back after
a restart finds its row. 4. The desk waits until the row has a decision: a person's
(compare-and-set in `decisions.py`), a mode change's, or the interrupt's. A wake only
hurries it; the row is looked at once a second in any case.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Literal, Protocol, cast

from asgiref.sync import sync_to_async
from django.utils import timezone

from sessions_app.engine.decision import Decision, RecordError
from sessions_app.engine.digest import arguments_sha256
from sessions_app.environment import AbortSignal, Environment
from sessions_app.environment.workdir import command_workdir
from sessions_app.models import ApprovalRequest, Session
from sessions_app.runtime import family, policy
from sessions_app.runtime.hub import Hub
from traces_app.omnimessage import OmniMessage, event
from traces_app.omnimessage.payloads import (
    ApprovalDecision,
    ApprovalRequested,
    DecisionSource,
    DecisionVia,
    ToolCall,
)


class Append(Protocol):
    """Records messages of the session together with rows, in one transaction."""

    async def __call__(
        self, *messages: OmniMessage, also: Callable[[], None] | None = None
    ) -> object: ...


class ApprovalDesk:
    """Answers every call of one session exactly once."""

    def __init__(
        self,
        session_id: str,
        *,
        environment: Environment,
        append: Append,
        hub: Hub,
        unasked: set[str],
        returning: Collection[str] = (),
        via: DecisionVia = "auto",
    ) -> None:
        """`returning` are calls of a turn that comes back: they may have a request.

        Whom a mode decides about without asking anybody is put into `unasked`.
        """
        self._session_id = session_id
        self._environment = environment
        self._append = append
        self._hub = hub
        self._unasked = unasked
        self._returning = frozenset(returning)
        self._via = via  # of the decisions that the mode makes
        self._in_order = asyncio.Lock()
        self.config_version: dict[str, int] | None = None
        self.stopped_by: str | None = None  # who pressed Stop, while a run ends
        self._waiting: set[int] = set()  # keys of the rows that are asked about
        self._heard: dict[int, ApprovalRequest] = {}  # decided ones among them
        self.is_closed = False  # the process ends: pending cards outlive it

    async def decide(self, call: OmniMessage, signal: AbortSignal) -> Decision:
        """Return the one decision of the call; soon after `signal` fires."""
        payload = cast("ToolCall", call.payload)
        async with self._in_order:
            session, row = await self._begin(payload.tool_call_id)
            if row is None:
                outside = await self._outside(payload, session)
                answer = self._by_mode(payload, session, outside)
                if answer is not None:
                    self._unasked.add(payload.tool_call_id)
                    return answer
                row = await self._ask(payload, session, outside)
        row, mode = await self._answered(row, signal)
        return Decision(
            event=decision_event(row, mode=mode, config_version=self.config_version),
            arguments=row.edited_arguments,
            is_recorded=row.decision_recorded,
        )

    async def _begin(
        self, tool_call_id: str
    ) -> tuple[Session | None, ApprovalRequest | None]:
        """Read the mode, and the request if there can be one already."""
        if tool_call_id in self._returning:
            return await sync_to_async(self._look)(tool_call_id)
        return await sync_to_async(self._session)(), None

    @staticmethod
    async def _outside(call: ToolCall, session: Session | None) -> str | None:
        if session is None or call.name not in policy.ASKS_THE_WEB:
            return None
        look = sync_to_async(policy.outside_host)
        return await look(session, call.name, call.arguments)

    def _by_mode(
        self, call: ToolCall, session: Session | None, outside: str | None
    ) -> Decision | None:
        mode = _mode_of(session)
        permission = self._environment.permission_of(call.name)
        answer = policy.verdict(mode, permission, outside=outside)
        if answer == "ask":
            return None
        digest = self._digest(call)
        return Decision(
            event=ApprovalDecision(
                decision=answer,
                tool_call_id=call.tool_call_id,
                source="mode",
                via=self._via,
                mode=mode,
                config_version=self.config_version,
                arguments_sha256=digest,
                executed_sha256=digest if answer == "allow" else None,
            )
        )

    async def _ask(
        self, call: ToolCall, session: Session | None, outside: str | None
    ) -> ApprovalRequest:
        permission = self._environment.permission_of(call.name)
        if session is None:
            raise LookupError(f"The row of {self._session_id} is gone: nobody can say.")
        row = new_request(session, call, permission=permission, outside=outside)

        def store() -> None:
            row.save(force_insert=True)
            family.show_waiting(session)

        await self._append(asked_event(row), also=store)
        self._hub.notify(self._session_id)
        return row

    async def _answered(
        self, row: ApprovalRequest, signal: AbortSignal
    ) -> tuple[ApprovalRequest, str | None]:
        with self._hub.watch(self._session_id) as watch:
            signal.add_callback(watch.wake)
            self._waiting.add(row.pk)
            try:
                while True:
                    if self.is_closed:
                        raise RecordError("The server stops; nothing is settled now.")
                    if signal.aborted:
                        await sync_to_async(self._settle)(row, signal.reason)
                    if heard := self._heard.pop(row.pk, None):
                        return heard, _mode_of(heard.session)
                    session, now = await sync_to_async(self._look)(row.tool_call_id)
                    if now is None:  # deleted with its session
                        await sync_to_async(self._settle_lost)(row)
                        return row, None
                    if now.decision is not None:
                        return now, _mode_of(session)
                    await watch.wait()
            finally:
                self._waiting.discard(row.pk)
                signal.remove_callback(watch.wake)

    def hear(self, row: ApprovalRequest) -> None:
        """Take a decision that was just committed here: nothing has to be read."""
        if row.pk in self._waiting:
            self._heard[row.pk] = row

    def _settle(self, row: ApprovalRequest, reason: str | None) -> None:
        """Close a request nobody answered; an answer that came first stays."""
        ApprovalRequest.objects.filter(pk=row.pk, decision=None).update(
            decision="deny",
            source="stream" if reason == "stream" else "interrupt",
            via="auto",
            decided_by=self.stopped_by if reason != "stream" else None,
            decided_at=timezone.now(),
        )

    def _digest(self, call: ToolCall) -> str:
        workdir = self._environment.workdir_of(call.name, call.arguments)
        return arguments_sha256(call.name, workdir, call.arguments)

    def _session(self) -> Session | None:
        sessions = Session.objects.select_related("parent", "project")
        return sessions.filter(pk=self._session_id).first()

    def _look(self, tool_call_id: str) -> tuple[Session | None, ApprovalRequest | None]:
        """Read the mode and the call's newest request, fresh."""
        session = self._session()
        requests = ApprovalRequest.objects.filter(
            session_id=self._session_id, tool_call_id=tool_call_id
        )
        return session, requests.order_by("-attempt").first()

    @staticmethod
    def _settle_lost(row: ApprovalRequest) -> None:
        row.decision, row.source, row.via = "deny", "interrupt", "auto"
        row.decided_at = timezone.now()


def _mode_of(session: Session | None) -> str | None:
    """Return the mode that counts for the session at this moment."""
    return family.mode_source(session).approval_mode if session else None


def new_request(
    session: Session,
    call: ToolCall,
    *,
    permission: str | None,
    outside: str | None = None,
) -> ApprovalRequest:
    """Return the unsaved row that asks a person about the call."""
    workdir = command_workdir(Path(session.workspace), call.name, call.arguments)
    return ApprovalRequest(
        session=session,
        tool_call_id=call.tool_call_id,
        name=call.name,
        arguments=call.arguments,
        workdir=workdir,
        permission=permission or "",
        origin=family.origin_of(session),
        arguments_sha256=arguments_sha256(call.name, workdir, call.arguments),
        asked_because=policy.asked_because(
            family.mode_source(session), permission, outside=outside
        ),
    )


def asked_event(row: ApprovalRequest) -> OmniMessage:
    """Return the event that says a person is asked."""
    return event(
        ApprovalRequested(
            tool_call_id=row.tool_call_id,
            attempt=row.attempt,
            arguments_sha256=row.arguments_sha256,
            workdir=row.workdir,
            asked_because=row.asked_because,
        )
    )


def decision_event(
    row: ApprovalRequest, *, mode: str | None, config_version: dict[str, int] | None
) -> ApprovalDecision:
    """Return the event that says everything about a decided row."""
    decided_at = row.decided_at or timezone.now()
    waited = decided_at - row.requested_at
    return ApprovalDecision(
        decision=cast("Literal['allow', 'deny']", row.decision),
        tool_call_id=row.tool_call_id,
        attempt=row.attempt,
        source=cast("DecisionSource", row.source),
        via=cast("DecisionVia", row.via),
        mode=mode,
        decided_by=row.decided_by,
        reason=row.reason or None,
        config_version=config_version,
        waited_ms=max(0, int(waited.total_seconds() * 1000)),
        arguments_sha256=row.arguments_sha256,
        shown_sha256=row.shown_sha256 or None,
        executed_sha256=row.arguments_sha256 if row.decision == "allow" else None,
    )


def mark_recorded(session_id: str, events: list[ApprovalDecision]) -> bool:
    """Mark the requests whose decisions are recorded; whether there were any.

    Belongs into the transaction that records them. A mode asks nobody: no request.
    """
    marked = 0
    for decided in events:
        marked += ApprovalRequest.objects.filter(
            session_id=session_id,
            tool_call_id=decided.tool_call_id,
            attempt=decided.attempt,
        ).update(decision_recorded=True)
    return marked > 0
