"""Imports a JSONL Trace: all of it or nothing, never into a record that is there.

Flow: (1) every line is checked, without the database, into a list of problems. (2)
With problems, unless damaged lines may be marked, the import is refused with each
line and reason. (3) One transaction makes the Trace and its events; the body of an
event is the exact text of its line, so an export gives back the same bytes.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import IO, Literal

from django.db import transaction
from django.utils import timezone

from traces_app import journal
from traces_app.columns import LENGTH, columns_of
from traces_app.insertion import Batch, Draft, draft
from traces_app.integrity import write_checkpoint
from traces_app.models import Trace
from traces_app.omnimessage import OmniMessage, event
from traces_app.omnimessage import payloads as p
from traces_app.omnimessage.codec import loads

Damaged = Literal["refuse", "mark"]
_SPOOL_BYTES = 8 * 1024 * 1024  # beyond this the upload waits on disk
_BATCH = 500  # events of one insert
_MOST_PROBLEMS = 1000  # that are told
_ID = re.compile(r"(?!\.+$)[^\s/\\?#%\x00-\x20\x7f]+")


@dataclass(frozen=True, slots=True)
class Problem:
    """A line that is no message of a Trace."""

    line: int  # 1 for the first
    reason: str


class ImportRefused(Exception):
    """Nothing was imported; `problems` says which lines are to blame."""

    def __init__(self, problems: list[Problem]) -> None:
        first = problems[0]
        super().__init__(f"line {first.line}: {first.reason}")
        self.problems = problems


class TraceExists(Exception):
    """The session has a record already, which is not touched."""

    def __init__(self, trace: Trace) -> None:
        super().__init__(f"The session {trace.session_id} has a record already.")
        self.trace = trace


def import_trace(
    source: Iterable[bytes],
    *,
    project: str,
    by: str,
    file_name: str = "",
    damaged: Damaged = "refuse",
) -> Trace:
    """Import chunks of a file; raises `ImportRefused` or `TraceExists`.

    With `damaged="mark"` a bad line becomes one visible `damaged` event in its place;
    the first line, which names the session, must be good all the same.
    """
    with tempfile.SpooledTemporaryFile(_SPOOL_BYTES) as spool:
        for chunk in source:
            spool.write(chunk)
        ends_in_newline = _ends_in_newline(spool)
        check = _Check()
        problems = [problem for problem in map(check.problem, _lines(spool)) if problem]
        if check.session_id is None:
            empty = [Problem(1, "the file is empty")]
            raise ImportRefused(problems[:_MOST_PROBLEMS] or empty)
        existing = Trace.objects.filter(session_id=check.session_id).first()
        if existing is not None:
            raise TraceExists(existing)
        if problems and damaged == "refuse":
            raise ImportRefused(problems[:_MOST_PROBLEMS])
        trace = Trace(
            session_id=check.session_id,
            project=project,
            owner=by,
            title=check.title,
            imported_at=timezone.now(),
            imported_by=by,
            imported_from=file_name[:200],
            ends_in_newline=ends_in_newline,
        )
        bad = {problem.line: problem for problem in problems}
        _store(trace, _lines(spool), bad)
    return trace


def _store(
    trace: Trace, lines: Iterator[tuple[int, bytes]], bad: dict[int, Problem]
) -> None:
    with transaction.atomic():
        existing = Trace.objects.filter(session_id=trace.session_id).first()
        if existing is not None:
            raise TraceExists(existing)
        trace.save(force_insert=True)
        batch = Batch()
        for number, line in lines:
            batch.add(trace.pk, [_draft(line, bad.get(number))])
            if number % _BATCH == 0:
                batch.flush()
        batch.flush()
        write_checkpoint(trace.pk)
        journal.record(
            "import",
            trace.imported_by,
            session_id=trace.session_id,
            project=trace.project,
            details={"file": trace.imported_from, "damaged_lines": len(bad)},
            every_time=True,
        )


def _draft(line: bytes, problem: Problem | None) -> Draft:
    if problem is not None:
        payload = p.Damaged(line=problem.line, reason=problem.reason)
        return draft(event(payload))
    text = line.decode()
    return Draft(text, line, columns_of(loads(text)))


class _Check:
    """Reads line by line; the first one names the session."""

    def __init__(self) -> None:
        self.session_id: str | None = None
        self.title = ""

    def problem(self, numbered: tuple[int, bytes]) -> Problem | None:
        """Return what is wrong with a line, None for a good one."""
        number, line = numbered
        reason = self._reason(number, line)
        return Problem(number, reason) if reason else None

    def _reason(self, number: int, line: bytes) -> str | None:
        try:
            message = OmniMessage.from_json(line.decode())
        except UnicodeDecodeError as error:
            return f"not UTF-8 at byte {error.start + 1}"
        except ValueError as error:  # CodecError, or a number of too many digits
            return str(error) if line.strip() else "empty line"
        payload = message.payload
        if number == 1:
            return self._first_reason(payload)
        if message.is_partial:
            return f"a {message.kind} is streaming and no part of a Trace"
        if isinstance(payload, p.SessionMeta):
            return self._later_reason(payload)
        self._note_title(payload)
        return None

    def _later_reason(self, payload: p.SessionMeta) -> str | None:
        """A session may say again what it is, but one file holds one session."""
        if self.session_id in (None, payload.session_id):
            return None
        return f"begins another session, {payload.session_id}"

    def _note_title(self, payload: p.Payload) -> None:
        if self.title or not isinstance(payload, p.Text):
            return
        if payload.role == "user" and payload.synthetic is None:
            self.title = payload.text.strip().split("\n")[0][:60]

    def _first_reason(self, payload: p.Payload) -> str | None:
        if not isinstance(payload, p.SessionMeta):
            return "the first line is no session_meta"
        if len(payload.session_id) > LENGTH or not _ID.fullmatch(payload.session_id):
            return (
                f"payload.session_id: expected 1 to {LENGTH} characters that can stand "
                "in an address"
            )
        self.session_id = payload.session_id
        return None


def _lines(spool: IO[bytes]) -> Iterator[tuple[int, bytes]]:
    spool.seek(0)
    for number, line in enumerate(spool, start=1):
        yield number, line.removesuffix(b"\n")


def _ends_in_newline(spool: IO[bytes]) -> bool:
    if spool.seek(0, 2) == 0:
        return True
    spool.seek(-1, 2)
    return spool.read(1) == b"\n"
