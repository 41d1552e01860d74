"""The engine for a Python program: a session without a database or a server."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from datetime import UTC, datetime

from sessions_app.engine.agent_loop import AgentLoop
from sessions_app.engine.approver import Approver
from sessions_app.engine.decision import Approve, Decision, RecordError
from sessions_app.engine.history import History
from sessions_app.engine.options import LoopOptions
from sessions_app.engine.retry import describe
from sessions_app.engine.tool_run import Tools
from sessions_app.environment.environment import Environment
from sessions_app.environment.tool import AbortSignal
from sessions_app.llm.client import LLMClient
from traces_app.omnimessage import OmniMessage
from traces_app.omnimessage import payloads as p

Record = Callable[[OmniMessage], Awaitable[None]]
_DEFAULTS = LoopOptions()


class AgentSession:
    """A conversation with tools; nothing runs that `approve` does not allow.

    `record` is awaited for every complete message and event, one at a time, before
    the message is yielded and before a tool starts; when it raises, the run stops.
    `history` continues an earlier session: `History.from_messages` of its record.
    A run that is stopped stops what child agents do too.
    """

    def __init__(
        self,
        *,
        llm: LLMClient,
        environment: Tools,
        system_prompt: str,
        record: Record | None = None,
        options: LoopOptions = _DEFAULTS,
        history: History | None = None,
        session_id: str | None = None,
        source: str | None = None,
    ) -> None:
        self.session_id = session_id or new_session_id()
        self._source = source  # "subagent" on a child session
        self._llm = llm
        self._environment = environment
        self._system_prompt = system_prompt
        self._is_new = history is None
        self._approver = Approver(approve=None, tools=environment)
        self._loop = AgentLoop(
            llm=llm,
            environment=environment,
            system_prompt=system_prompt,
            history=history or History(),
            record=_OneByOne(record),
            decide=self._decide,
            options=options,
        )

    @property
    def history(self) -> History:
        """What the model sees next, and what is open."""
        return self._loop.history

    async def run(
        self,
        messages: Sequence[OmniMessage] = (),
        *,
        approve: Approve | None = None,
        signal: AbortSignal | None = None,
    ) -> AsyncGenerator[OmniMessage, None]:
        """Give the model the messages and yield all that happens until it is done.

        `approve` is asked once for each complete tool call; without it, and when it
        raises or says anything but "allow", the call is denied.
        """
        if self._loop.is_running:
            raise RuntimeError("a run of this session has not ended yet")
        self._approver = Approver(approve=approve, tools=self._environment)
        inputs = [self._meta(), *messages] if self._is_new else messages
        self._is_new = False
        async with aclosing(self._loop.run(inputs, signal=signal)) as stream:
            async for message in stream:
                yield message
        is_stopped = signal is not None and signal.aborted
        if is_stopped and isinstance(self._environment, Environment):
            self._environment.stop_subagents()

    async def compact(
        self, *, signal: AbortSignal | None = None
    ) -> AsyncGenerator[OmniMessage, None]:
        """Summarise the conversation into a fresh context; see `AgentLoop.compact`."""
        async with aclosing(self._loop.compact(signal=signal)) as stream:
            async for message in stream:
                yield message

    def retry_now(self) -> None:
        """End the wait before the next attempt at a failed request."""
        self._loop.retry_now()

    def _meta(self) -> OmniMessage:
        """Return the first message of a record: who speaks with what, and where."""
        meta = p.SessionMeta(
            session_id=self.session_id,
            provider=self._llm.provider,
            model_id=self._llm.model_id,
            model_context_window=self._llm.context_window,
            system_prompt=self._system_prompt,
            # A command without a directory of its own runs in the workspace.
            workspace=self._environment.workdir_of("exec_command", "{}") or "",
            source=self._source,
        )
        return OmniMessage(payload=meta)

    async def _decide(self, call: OmniMessage, signal: AbortSignal) -> Decision:
        return await self._approver.decide(call, signal)


def new_session_id() -> str:
    """Return `session-YYYY-MM-DD-HH-MM-SS-` and eight random hex digits, in UTC."""
    return f"session-{datetime.now(UTC):%Y-%m-%d-%H-%M-%S}-{secrets.token_hex(4)}"


class _OneByOne:
    """Gives a recorder of single messages what belongs together, in one piece."""

    def __init__(self, record: Record | None) -> None:
        self._record = record
        self._turn = asyncio.Lock()  # first come, first served

    async def __call__(self, *messages: OmniMessage) -> None:
        if self._record is None:
            return
        async with self._turn:
            for message in messages:
                try:
                    await self._record(message)
                except RecordError:
                    raise
                except Exception as error:
                    raise RecordError(f"recording failed: {describe(error)}") from error
