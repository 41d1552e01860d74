"""The engine's way into the record, with the rows that must be true together."""

from __future__ import annotations

from collections.abc import Callable

from sessions_app.runtime.approvals import Append, mark_recorded
from traces_app.omnimessage import OmniMessage
from traces_app.omnimessage.payloads import ApprovalDecision


class SessionRecorder:
    """Writes messages of one session; a decision also marks its request."""

    def __init__(
        self, session_id: str, *, append: Append, on_decided: Callable[[], None]
    ) -> None:
        self._session_id = session_id
        self._append = append
        self._on_decided = on_decided
        self.unasked: set[str] = set()  # calls that a mode decided: no request

    async def __call__(self, *messages: OmniMessage) -> None:
        """Store the messages in one transaction; raises `RecordError`."""
        payloads = [message.payload for message in messages]
        decisions = [p for p in payloads if isinstance(p, ApprovalDecision)]
        decided = [p for p in decisions if p.tool_call_id not in self.unasked]
        self.unasked.difference_update(p.tool_call_id for p in decisions)
        if not decided:
            await self._append(*messages)
            return
        was_asked = False

        def mark() -> None:
            nonlocal was_asked
            was_asked = mark_recorded(self._session_id, decided)

        await self._append(*messages, also=mark)
        if was_asked:
            self._on_decided()
