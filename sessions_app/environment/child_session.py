"""What an Environment needs of whoever can run child agents."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable
from dataclasses import dataclass
from typing import Literal, Protocol

from sessions_app.config.tool_definition import ToolDefinition
from sessions_app.environment.tool import AbortSignal, Approve
from traces_app.omnimessage import OmniMessage

SUBAGENT_TOOLS = frozenset({"run_subagent", "input_subagent"})
# released: its answer was handed over. evicted: to make room. closed: with its parent.
Ending = Literal["released", "evicted", "closed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildWish:
    """The child a call asks for; None: what the parent has."""

    tool_call_id: str
    agent_id: str | None = None
    provider: str | None = None  # with model_id or not at all
    model_id: str | None = None


class ChildSession(Protocol):
    """A session of a child agent, one task at a time.

    `forwards` says whether the parent's stream carries its messages; where people
    follow the child's own record, nothing has to be carried.
    """

    @property
    def session_id(self) -> str: ...

    @property
    def forwards(self) -> bool: ...

    def run(
        self, prompt: str, *, signal: AbortSignal, approve: Approve
    ) -> AsyncGenerator[OmniMessage, None]:
        """Work on the prompt and yield what happens; ends soon after `signal` fires.

        `approve` reaches the parent's callback as it is at that moment. The first
        message of a child that forwards is its `session_meta`.
        """
        ...

    async def pending_approvals(self) -> int:
        """Return how many of its calls wait for a person."""
        ...

    async def aclose(self, why: Ending) -> None:
        """Give up what it holds; nothing runs in it any more."""
        ...


class SpawnChild(Protocol):
    """Makes a child session without starting it."""

    async def __call__(self, wish: ChildWish) -> ChildSession:
        """Return the child, or raise `ToolError` naming the unknown agent or model."""
        ...


def tools_of_child(definitions: Iterable[ToolDefinition]) -> list[ToolDefinition]:
    """Return the tools of an agent that works as a child: it has no children."""
    return [tool for tool in definitions if tool.name not in SUBAGENT_TOOLS]
