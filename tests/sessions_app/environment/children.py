"""Child agents whose every word a test writes."""

import asyncio
import itertools
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

from sessions_app.environment import AbortSignal, ChildWish, Environment
from tests.sessions_app.environment.calls import Called, checked
from traces_app.omnimessage import OmniMessage, assistant_text, event, tool_call
from traces_app.omnimessage import payloads as p

Play = Callable[["Child", str], AsyncIterator[OmniMessage]]


def piece(text: str) -> OmniMessage:
    """A streamed bit of text."""
    return OmniMessage(
        payload=p.PartialText(role="assistant", event_type="delta", text=text)
    )


def notice(text: str) -> OmniMessage:
    """What the loop itself says when it gives up."""
    return OmniMessage(
        payload=p.Text(
            role="assistant",
            text=text,
            synthetic="notice",
            extra={"stop_reason": "failed"},
        )
    )


async def answers(child: "Child", prompt: str) -> AsyncIterator[OmniMessage]:
    yield assistant_text(f"did {prompt}")


class Child:
    """One child; `gates` are what its play waits for, unless it is stopped."""

    forwards = True

    def __init__(self, session_id: str, play: Play, wish: ChildWish) -> None:
        self.session_id = session_id
        self.wish = wish
        self.play = play
        self.prompts: list[str] = []
        self.signal = AbortSignal()
        self.approve: Any = None
        self.pending = 0
        self.closed: str | None = None
        self.gates: dict[str, asyncio.Event] = {}

    async def run(self, prompt: str, *, signal: AbortSignal, approve: Any):
        self.signal, self.approve = signal, approve
        if not self.prompts:
            yield OmniMessage(payload=meta(self.session_id))
        self.prompts.append(prompt)
        async for message in self.play(self, prompt):
            yield message
        if signal.aborted:
            yield event(p.Abort(reason="interrupted by the user"))

    def gate(self, name: str = "go") -> asyncio.Event:
        return self.gates.setdefault(name, asyncio.Event())

    async def wait(self, name: str = "go") -> None:
        """Wait for the gate, or for the stop."""
        waits = [asyncio.ensure_future(self.gate(name).wait())]
        waits.append(asyncio.ensure_future(self.signal.wait()))
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        for task in waits:
            task.cancel()

    async def ask(self, call_id: str = "call_child") -> Any:
        """Have a call decided by the parent's callback, or by the stop."""
        self.pending += 1
        call = tool_call("exec_command", "{}", call_id)
        asking = asyncio.ensure_future(self.approve(call))
        stop = asyncio.ensure_future(self.signal.wait())
        await asyncio.wait({asking, stop}, return_when=asyncio.FIRST_COMPLETED)
        self.pending -= 1
        is_answered = asking.done()
        asking.cancel()
        stop.cancel()
        return asking.result() if is_answered else "deny"

    async def pending_approvals(self) -> int:
        return self.pending

    async def aclose(self, why: str) -> None:
        self.closed = why


def meta(session_id: str) -> p.SessionMeta:
    return p.SessionMeta(
        session_id=session_id,
        provider="scripted",
        model_id="scripted",
        model_context_window=1000,
        system_prompt="",
        workspace="/",
        source="subagent",
    )


class Nursery:
    """The partner of an Environment: makes children that play."""

    def __init__(self, play: Play = answers) -> None:
        self.play = play
        self.children: list[Child] = []
        self.refuses: Exception | None = None
        self._numbers = itertools.count(1)

    async def __call__(self, wish: ChildWish) -> Child:
        await asyncio.sleep(0)
        if self.refuses:
            raise self.refuses
        child = Child(f"child-{next(self._numbers)}", self.play, wish)
        self.children.append(child)
        return child

    @property
    def child(self) -> Child:
        (only,) = self.children
        return only


async def use(
    environment: Environment,
    name: str,
    *,
    signal: AbortSignal | None = None,
    approve: Any = None,
    **arguments: Any,
) -> Called:
    """Run a call of a subagent tool and check its frames."""
    call = tool_call(name, json.dumps(arguments), "call_7")
    frames = environment.execute_tool(call, signal=signal, approve=approve)
    return checked([message async for message in frames], "call_7")


async def run(environment: Environment, prompt: str = "a", **more: Any) -> Called:
    return await use(environment, "run_subagent", prompt=prompt, **more)


async def start(environment: Environment, prompt: str = "a", **more: Any) -> str:
    """Run a child that outlives the shortest wait; return its id."""
    called = await run(environment, prompt, yield_time_ms=250, **more)
    assert called.details["running"] is True, called.output
    return called.details["subagent_id"]


async def poll(environment: Environment, subagent_id: str, **more: Any) -> Called:
    return await use(environment, "input_subagent", subagent_id=subagent_id, **more)
