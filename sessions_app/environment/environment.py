"""The Environment of a session: its tools, and the one way in which they are run.

`execute_tool` checks in a fixed order (interrupt, name, JSON, object, schema), runs
the tool and closes the call out: frames, cut, markers, images, one complete message.
It asks nobody; approval is the engine's. Whatever goes wrong becomes output: nothing a
tool does raises into the engine.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping
from contextlib import aclosing, contextmanager
from pathlib import Path
from typing import Any

from sessions_app.config.tool_definition import ToolDefinition
from sessions_app.environment.arguments import ArgumentsError, parse_arguments
from sessions_app.environment.artifacts import ArtifactFolder, Spool, new_stem
from sessions_app.environment.call_log import CallLog
from sessions_app.environment.child_session import ChildSession, SpawnChild
from sessions_app.environment.close_out import INTERRUPTED, CloseOut, Refused
from sessions_app.environment.command_env import command_env
from sessions_app.environment.describe import Describe
from sessions_app.environment.image_source import ImageSource
from sessions_app.environment.output_sink import NullSink, OutputSink
from sessions_app.environment.process_group import OWNER_TAG
from sessions_app.environment.process_table import ProcessTable
from sessions_app.environment.registry import OfferedTool, Partners, offered_tools
from sessions_app.environment.subagent_table import SubagentTable
from sessions_app.environment.tool import (
    AbortSignal,
    Approve,
    ToolContext,
)
from sessions_app.environment.tool_run import ToolRun
from sessions_app.environment.tools.input_command import checked_chars, poll_cap
from sessions_app.environment.truncation import effective_cap
from sessions_app.environment.workdir import command_workdir
from traces_app.omnimessage import OmniMessage, StopReason
from traces_app.omnimessage.payloads import ToolCall

logger = logging.getLogger(__name__)

_INPUT_S = 0.25  # how long a person's input may wait for room in the pipe


class Environment:
    """A workspace and the tools that work in it."""

    def __init__(
        self,
        workspace_dir: str | os.PathLike[str],
        tools: Iterable[ToolDefinition],
        model_is_vision: bool = False,
        *,
        env: Mapping[str, str] | None = None,
        artifact_dir: str | os.PathLike[str] | None = None,
        owner_tag: str | None = None,
        sink: OutputSink | None = None,
        passthrough: Iterable[str] = (),
        lost_processes: Mapping[str, str] | None = None,
        spawn_child: SpawnChild | None = None,
        children: Iterable[ChildSession] = (),
        gone_children: Mapping[str, str] | None = None,
        image_hosts: Iterable[str] = (),
        describe: Describe | None = None,
    ) -> None:
        """Make the tools; duplicate names raise `ConfigError`.

        `env` are the agent's own variables, `passthrough` names more of the host's;
        `owner_tag` marks every command for `process_group.sweep`. `lost_processes`
        says of ids from before why they are gone: "lost", "evicted" or "exited CODE".
        `spawn_child` makes child agents; `children` of before are idle and can be
        used, `gone_children` cannot ("lost" or "evicted"). `image_hosts` may be asked
        for images even in private networks; `describe` asks a model that sees.
        """
        self._workspace = Path(workspace_dir).absolute()
        self._folder = ArtifactFolder(Path(artifact_dir) if artifact_dir else None)
        self._sink = sink or NullSink()
        definitions = list(tools)
        variables = command_env(os.environ, env or {}, passthrough)
        if owner_tag:
            variables[OWNER_TAG] = owner_tag
        self._table = ProcessTable(
            env=variables,
            sink=self._sink,
            folder=self._folder,
            poll_cap=poll_cap(definitions),
            lost=lost_processes or {},
        )
        self._subagents = SubagentTable(
            spawn_child, children=children, gone=gone_children
        )
        partners = Partners(
            table=self._table,
            subagents=self._subagents,
            images=ImageSource(self._workspace, tuple(image_hosts)),
            describe=describe,
        )
        self._entries = offered_tools(definitions, model_is_vision, partners)
        self._running: set[AbortSignal] = set()
        self._closing: asyncio.Task[None] | None = None

    def tool_list(self) -> list[dict[str, Any]]:
        """Return what the model sees of the tools."""
        return [
            {
                "name": entry.definition.name,
                "description": entry.definition.description,
                "parameters": dict(entry.definition.parameters),
            }
            for entry in self._entries.values()
        ]

    def permission_of(self, name: str) -> str | None:
        """Return "r" or "rw"; None for an unknown tool or one that declares nothing."""
        entry = self._entries.get(name)
        return entry.definition.permission if entry else None

    def workdir_of(self, name: str, arguments_text: str) -> str | None:
        """Return the absolute directory a command would run in, else None."""
        return command_workdir(self._workspace, name, arguments_text)

    async def execute_tool(
        self,
        tool_call: OmniMessage,
        signal: AbortSignal | None = None,
        approve: Approve | None = None,
    ) -> AsyncGenerator[OmniMessage, None]:
        """Run one call and yield its frames, at the end the complete output.

        `signal` interrupts the call; `approve` is only handed on to children.
        """
        call = tool_call.payload
        if not isinstance(call, ToolCall):
            raise TypeError(f"expected a tool_call, found {tool_call.kind}")
        entry = self._entries.get(call.name)
        ctx = ToolContext(
            workspace_dir=self._workspace,
            tool_call_id=call.tool_call_id,
            approve=approve,
            details=dict(getattr(entry.tool, "DETAILS", {})) if entry else {},
        )
        cap = entry.definition.max_output_length if entry else 0
        close_out = CloseOut(ctx, cap=effective_cap(cap))
        with self._interruptible(signal) as interrupt, _closing(ctx):
            yield close_out.start()
            try:
                args = self._checked(entry, call, interrupt)
            except Refused as refusal:
                verdict = refusal.verdict
            else:
                assert entry is not None
                run = self._run(entry, args, ctx, close_out, interrupt)
                async with aclosing(run.frames()) as frames:
                    async for frame in frames:
                        yield frame
                verdict = await run.verdict()
            for frame in close_out.finish(verdict):
                yield frame

    def _checked(
        self, entry: OfferedTool | None, call: ToolCall, interrupt: AbortSignal
    ) -> dict[str, Any]:
        """Return the arguments; raises `Refused` when the call cannot begin."""
        if interrupt.aborted:
            raise Refused(StopReason.ABORTED, INTERRUPTED)
        if self._closing is not None:
            raise Refused.because("the session is closed; nothing was run")
        if entry is None:
            known = ", ".join(self._entries) or "there are none"
            raise Refused.because(f"unknown tool {call.name!r}; known tools: {known}")
        try:
            args = parse_arguments(call.arguments)
            entry.check.check(args)
        except ArgumentsError as error:
            raise Refused.because(str(error)) from error
        return args

    def _run(
        self,
        entry: OfferedTool,
        args: dict[str, Any],
        ctx: ToolContext,
        close_out: CloseOut,
        interrupt: AbortSignal,
    ) -> ToolRun:
        log = None
        if not getattr(entry.tool, "KEEPS_LOG", False):
            spool = Spool(self._folder, new_stem("call"))
            log = CallLog(ctx.tool_call_id, sink=self._sink, spool=spool)
            ctx.artifact, ctx.on_close = log.artifact, log.close
        return ToolRun(
            entry.tool,
            args,
            ctx=ctx,
            close_out=close_out,
            log=log,
            interrupt=interrupt,
            timeout_ms=entry.definition.timeout_ms,
        )

    @contextmanager
    def _interruptible(self, signal: AbortSignal | None) -> Iterator[AbortSignal]:
        """Give the call a signal that the caller's and `aclose` fire."""
        interrupt = AbortSignal()
        self._running.add(interrupt)
        if signal is not None:
            signal.add_callback(interrupt.abort)
        try:
            yield interrupt
        finally:
            self._running.discard(interrupt)
            if signal is not None:
                signal.remove_callback(interrupt.abort)

    def processes(self) -> list[dict[str, Any]]:
        """Return every command that can be reached, and what escaped its command."""
        return self._table.describe()

    def subagents(self) -> list[dict[str, Any]]:
        """Return every child agent that works or can be given another task."""
        return self._subagents.describe()

    def stop_subagents(self) -> None:
        """Stop what every child does; the idle ones stay."""
        self._subagents.stop()

    async def kill_process(self, process_id: str) -> bool:
        """End a command, whatever call is open; return whether it was running."""
        return await self._table.kill(process_id)

    async def send_input(self, process_id: str, chars: str) -> int:
        """Type into a command as a person does; return how many were delivered."""
        session = self._table.get(process_id)
        if session is None:
            return 0
        deadline = asyncio.get_running_loop().time() + _INPUT_S
        chars = checked_chars(chars)
        return await session.send(chars, deadline=deadline, abort=AbortSignal())

    async def aclose(self) -> None:
        """End every call and every process; nothing survives. May be repeated."""
        if self._closing is None:
            self._closing = asyncio.get_running_loop().create_task(self._close())
        # Whoever stops waiting does not stop the ending.
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        for interrupt in tuple(self._running):
            interrupt.abort("close")
        await self._subagents.aclose()
        await self._table.aclose()
        self._folder.remove_own()


@contextmanager
def _closing(ctx: ToolContext) -> Iterator[None]:
    try:
        yield
    finally:
        if ctx.on_close is not None:
            ctx.on_close()
