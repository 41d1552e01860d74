"""Child agents for a Python program: sessions that run_subagent starts by itself."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

from sessions_app.config.tool_definition import ToolDefinition
from sessions_app.engine.agent_session import AgentSession, Record, new_session_id
from sessions_app.engine.options import LoopOptions
from sessions_app.environment.child_session import ChildWish, Ending, tools_of_child
from sessions_app.environment.describe import Describe
from sessions_app.environment.environment import Environment
from sessions_app.environment.tool import AbortSignal, Approve, ToolError
from sessions_app.llm.client import LLMClient
from traces_app.omnimessage import OmniMessage, user_text

_DEFAULTS = LoopOptions()
_NOTHING: Mapping[str, Any] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildAgent:
    """What an agent is when it works as a child; it gets no subagent tools."""

    system_prompt: str
    tools: Sequence[ToolDefinition]
    env: Mapping[str, str] = field(default_factory=dict)


class ChildSessions:
    """Makes the children of an Environment: `Environment(spawn_child=ChildSessions(...))`.

    A child works in the same workspace, with the parent's model unless the call names
    one that `make_llm` knows, as `agent` unless the call names one of `agents`.
    `record` gives each child a record of its own, by its session id.
    """

    def __init__(
        self,
        *,
        llm: LLMClient,
        workspace_dir: str | os.PathLike[str],
        agent: ChildAgent,
        agents: Mapping[str, ChildAgent] = _NOTHING,
        make_llm: Callable[[str, str], LLMClient | None] | None = None,
        record: Callable[[str], Record] | None = None,
        options: LoopOptions = _DEFAULTS,
        describe: Describe | None = None,
        image_hosts: Sequence[str] = (),
    ) -> None:
        self._llm = llm
        self._workspace_dir = workspace_dir
        self._agent = agent
        self._agents = agents
        self._make_llm = make_llm
        self._record = record
        self._options = options
        self._describe = describe
        self._image_hosts = image_hosts

    async def __call__(self, wish: ChildWish) -> AgentChild:
        """Return a child that is not started; raises `ToolError`."""
        agent = self._find_agent(wish.agent_id)
        llm = self._find_llm(wish)
        environment = Environment(
            self._workspace_dir,
            tools_of_child(agent.tools),
            llm.is_vision,
            env=agent.env,
            describe=self._describe,
            image_hosts=self._image_hosts,
        )
        session_id = new_session_id()
        session = AgentSession(
            llm=llm,
            environment=environment,
            system_prompt=agent.system_prompt,
            record=self._record(session_id) if self._record else None,
            options=self._options,
            session_id=session_id,
            source="subagent",
        )
        own_llm = llm if llm is not self._llm else None
        return AgentChild(session, environment, own_llm=own_llm)

    def _find_agent(self, agent_id: str | None) -> ChildAgent:
        if agent_id is None:
            return self._agent
        if agent_id not in self._agents:
            known = ", ".join(self._agents) or "there are none"
            raise ToolError(f"unknown agent {agent_id!r}; known agents: {known}")
        return self._agents[agent_id]

    def _find_llm(self, wish: ChildWish) -> LLMClient:
        if wish.provider is None or wish.model_id is None:
            return self._llm
        if (wish.provider, wish.model_id) == (self._llm.provider, self._llm.model_id):
            return self._llm
        llm = self._make_llm(wish.provider, wish.model_id) if self._make_llm else None
        if llm is None:
            raise ToolError(
                f"unknown model {wish.provider}/{wish.model_id}; leave provider and "
                "model_id out to use your own"
            )
        return llm


class AgentChild:
    """A child session without a database or a server."""

    forwards = True

    def __init__(
        self,
        session: AgentSession,
        environment: Environment,
        *,
        own_llm: LLMClient | None,
    ) -> None:
        self.session_id = session.session_id
        self._session = session
        self._environment = environment
        self._own_llm = own_llm
        self._pending = 0

    async def run(
        self, prompt: str, *, signal: AbortSignal, approve: Approve
    ) -> AsyncGenerator[OmniMessage, None]:
        """Work on the prompt and yield what happens."""

        async def ask(call: OmniMessage) -> Any:
            self._pending += 1
            try:
                return await approve(call)
            finally:
                self._pending -= 1

        run = self._session.run([user_text(prompt)], approve=ask, signal=signal)
        async with aclosing(run) as messages:
            async for message in messages:
                yield message

    async def pending_approvals(self) -> int:
        """Return how many calls the callback has not answered."""
        return self._pending

    async def aclose(self, why: Ending) -> None:
        """End its processes, and the client that was made for it."""
        await self._environment.aclose()
        if self._own_llm is not None:
            await self._own_llm.aclose()
