"""Runs one task from its message to its end, and says how it ended.

Flow: 1. This process hosts a supervisor of its own; a server may run beside it on the
same database. 2. A session is made and the task started. 3. The session's stream is
written out; pending calls become questions. 4. Ctrl-C stops the task as the Stop
button does, a second one at once. 5. The supervisor ends the session's commands.
"""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from asgiref.sync import sync_to_async

from sessions_app import runtime
from sessions_app.models import Project, Session
from sessions_app.runtime.configs import DEFAULT_PROJECT
from sessions_app.terminal.answers import Answers
from sessions_app.terminal.questions import Questions
from sessions_app.terminal.transcript import Transcript
from traces_app.omnimessage import OmniMessage

COMPLETED, FAILED, USAGE = 0, 1, 2
STOPPED = 128  # plus the number of the signal, as shells have it
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What the caller asks for; None means the project's default."""

    message: str
    project: str | None = None
    agent: str | None = None
    model: str | None = None
    thinking_level: str | None = None
    workspace: str | None = None
    approval_mode: str = "allow-all"
    is_json: bool = False


async def run_task(
    wanted: Wanted, *, out: TextIO, err: TextIO, answers: Answers
) -> int:
    """Run the task; return the exit code of the process."""
    if not wanted.message.strip():
        err.write("The message is empty: write what the agent should do.\n")
        return USAGE
    await runtime.start_supervisor(via="cli")
    try:
        try:
            session = await _session(wanted)
            await runtime.start_task(session.pk, text=wanted.message)
        except runtime.Refusal as refusal:
            err.write(f"{refusal.message}\n")
            return USAGE
        task = _Task(session, wanted, out=out, err=err, answers=answers)
        return await task.run()
    finally:
        await runtime.stop_supervisor()


async def _session(wanted: Wanted) -> Session:
    project = await sync_to_async(_project)(wanted.project)
    try:
        folder = Path(wanted.workspace or Path.cwd()).absolute()
    except FileNotFoundError:
        raise runtime.invalid(
            "workspace", "The current directory is gone: name one with --workspace."
        ) from None
    return await runtime.create_session(
        project=project,
        user=None,
        any_workspace=True,
        agent=wanted.agent,
        model=wanted.model,
        thinking_level=wanted.thinking_level,
        workspace=str(folder),
        approval_mode=wanted.approval_mode,
    )


def _project(slug: str | None) -> Project:
    found = Project.objects.filter(slug=slug or DEFAULT_PROJECT).first()
    if found is None:
        known = ", ".join(Project.objects.values_list("slug", flat=True))
        name = slug or DEFAULT_PROJECT
        raise runtime.invalid(
            "project", f"There is no project {name!r}; --project takes: {known}."
        )
    return found


class _Task:
    """A task that has begun, and the person before the terminal."""

    def __init__(
        self,
        session: Session,
        wanted: Wanted,
        *,
        out: TextIO,
        err: TextIO,
        answers: Answers,
    ) -> None:
        self._session_id: str = session.pk
        self._session = session
        self._out = out
        self._err = err
        self._is_json = wanted.is_json
        self._transcript = Transcript(out, err)
        self._questions = Questions(answers, err)
        self._held: list[OmniMessage] = []
        self._signal: int | None = None
        self._tasks: set[asyncio.Task[Any]] = set()

    async def run(self) -> int:
        """Follow the task to its end."""
        loop = asyncio.get_running_loop()
        main = asyncio.current_task()
        for number in _SIGNALS:
            loop.add_signal_handler(number, self._on_signal, number, main)
        if not self._is_json:
            self._err.write(f"session {self._session_id}\n")
        self._spawn(self._questions.ask())
        try:
            await self._follow()
        except asyncio.CancelledError:
            # The second signal: what runs is ended without being settled.
            if main is not None:
                main.uncancel()
        finally:
            for number in _SIGNALS:
                loop.remove_signal_handler(number)
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
        return await self._exit_code()

    def _on_signal(self, number: int, main: asyncio.Task[Any] | None) -> None:
        if self._signal is None:
            self._signal = number
            self._spawn(runtime.interrupt(self._session_id))
        elif main is not None:
            main.cancel()

    def _spawn(self, coroutine: Any) -> None:
        self._tasks.add(asyncio.create_task(coroutine))

    async def _follow(self) -> None:
        events = await runtime.stream_events(self._session, "0")
        async with aclosing(events):
            async for event in events:
                if event.event == "status":
                    if await self._is_over():
                        return
                    continue
                try:
                    self._show(event.data)
                except BrokenPipeError:
                    await self._nobody_reads()

    async def _is_over(self) -> bool:
        """Look at what waits; return whether the task has ended."""
        pending = await sync_to_async(runtime.pending_requests)(self._session_id)
        self._questions.update(pending)
        if not pending:
            self._release()
        session = await Session.objects.aget(pk=self._session_id)
        return session.status == "idle"

    def _show(self, line: str) -> None:
        if self._is_json:
            self._out.write(f"{line}\n")
            self._out.flush()
            return
        message = OmniMessage.from_json(line)
        if self._questions.is_open:
            self._held.append(message)  # not into the middle of a question
        else:
            self._release()
            self._transcript.take(message)

    def _release(self) -> None:
        held, self._held = self._held, []
        for message in held:
            self._transcript.take(message)

    async def _nobody_reads(self) -> None:
        """Stop the task, quietly: the reader of the output has gone."""
        if self._signal is None:
            self._signal = signal.SIGPIPE
            await runtime.interrupt(self._session_id)
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self._out.fileno())
        os.close(nowhere)

    async def _exit_code(self) -> int:
        if trouble := runtime.trouble(self._session_id):
            self._err.write(f"{trouble}\n")
            return FAILED
        outcome = runtime.outcome(self._session_id)
        if outcome == "completed":
            return COMPLETED
        if self._signal is not None:
            return STOPPED + self._signal
        return STOPPED + signal.SIGINT if outcome == "aborted" else FAILED
