"""Asks a person at the terminal about each pending call, one at a time.

A question shows the stored request in full. It is taken back when somebody decides
elsewhere, or when the run is stopped.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from typing import TextIO

from sessions_app import runtime
from sessions_app.models import ApprovalRequest
from sessions_app.terminal.answers import Answers
from traces_app.arguments import Line, Value, read_arguments, spell

YES = frozenset({"y", "yes"})
_PERMISSIONS = {"r": "read-only", "rw": "read-write"}
_Key = tuple[str, str, int]


class Questions:
    """Keeps what is pending and asks about the oldest."""

    def __init__(self, answers: Answers, err: TextIO) -> None:
        self._answers = answers
        self._err = err
        self._pending: dict[_Key, ApprovalRequest] = {}
        self._settled: set[_Key] = set()  # answered here
        self._changed = asyncio.Event()

    @property
    def is_open(self) -> bool:
        """Return whether a person is being asked."""
        return bool(self._pending)

    def update(self, requests: Sequence[ApprovalRequest]) -> None:
        """Take note of what is pending now."""
        found = {_key(row): row for row in requests}
        self._pending = {k: r for k, r in found.items() if k not in self._settled}
        self._changed.set()

    async def ask(self) -> None:
        """Ask for ever about whatever comes."""
        while True:
            self._changed.clear()
            for key, row in list(self._pending.items()):
                if key in self._pending:
                    await self._ask(key, row)
            if not self._pending:
                await self._changed.wait()

    async def _ask(self, key: _Key, row: ApprovalRequest) -> None:
        self._answers.forget_typed()
        self._say(question(row))
        reading = asyncio.create_task(self._answers.line())
        try:
            while not reading.done() and key in self._pending:
                self._changed.clear()
                waking = asyncio.create_task(self._changed.wait())
                await asyncio.wait(
                    {reading, waking}, return_when=asyncio.FIRST_COMPLETED
                )
                waking.cancel()
            if key in self._pending:
                await self._decide(key, row, reading.result())
            else:
                self._say("\nNo answer needed any more: the call is decided.\n")
        finally:
            reading.cancel()

    async def _decide(
        self, key: _Key, row: ApprovalRequest, answer: str | None
    ) -> None:
        is_allowed = answer is not None and answer.strip() in YES
        word = "allowed" if is_allowed else "denied"
        self._say(
            f"\nStandard input has ended: {word}\n" if answer is None else f"{word}\n"
        )
        try:
            await runtime.decide(
                row.session_id,
                row.tool_call_id,
                decision="allow" if is_allowed else "deny",
                user=None,
                via="cli",
                arguments_sha256=row.arguments_sha256,
                attempt=row.attempt,
            )
        except runtime.Refusal as refusal:
            self._say(f"{refusal.message}\n")
        self._settled.add(key)
        self._pending.pop(key, None)

    def _say(self, text: str) -> None:
        self._err.write(text)
        self._err.flush()


def question(row: ApprovalRequest) -> str:
    """Return the request as a person has to see it before deciding."""
    return "\n".join([*_lines(row), "Allow this call? Only y or yes allows: "])


def _lines(row: ApprovalRequest) -> Iterator[str]:
    permission = _PERMISSIONS.get(row.permission, "unknown tool")
    yield f"\n{_text(spell(row.name))} ({permission}) waits for your decision"
    if row.origin:
        yield f"  of subagent {row.origin[-1]}"
    if row.workdir:
        yield f"  in {_text(spell(row.workdir))}"
    arguments = read_arguments(row.name, row.arguments)
    if arguments.problem:
        yield f"  {arguments.problem} Once decided, it fails."
    values = (arguments.command, *arguments.rows)
    for value in filter(None, values):
        yield from _value(value)
    if arguments.escapes:
        yield f"  Read carefully: {arguments.escapes} hidden characters are escaped."
    yield f"  asked because: {row.asked_because}"


def _value(value: Value) -> Iterator[str]:
    """Return a name and its whole text; nothing is folded away here."""
    lines = list(map(_text, value.head))
    rest = list(map(_text, value.rest))
    if value.is_line_cut and rest:
        lines[-1] += rest.pop(0)
    lines += rest
    if len(lines) == 1:
        yield f"  {_text(value.name)}: {lines[0]}"
        return
    yield f"  {_text(value.name)}:"
    for line in lines:
        yield f"    {line}"


def _text(line: Line) -> str:
    return "".join(span.text for span in line)


def _key(row: ApprovalRequest) -> _Key:
    return row.session_id, row.tool_call_id, row.attempt
