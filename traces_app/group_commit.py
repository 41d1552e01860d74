"""One transaction for a group of appends; each of them succeeds or fails alone.

Responsibilities: write a group, tell a caller's own failure (its `also` or `after`
raised: only its savepoint is undone) from a failure of the database (nothing of the
group stands), repeat a group that met another writer, and sign when it is time.
`writer` queues the submissions and carries the answers back.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from django.db import DatabaseError, connections, transaction

from traces_app import database_errors
from traces_app.insertion import Batch, Draft, HeadConflict, draft
from traces_app.integrity import write_checkpoint
from traces_app.omnimessage import OmniMessage
from traces_app.signing import SigningKeyError
from traces_app.stored_event import StoredEvent

logger = logging.getLogger(__name__)

CHECKPOINT_EVENTS = 1000
CHECKPOINT_S = 60.0  # of activity
_TRIES = 5  # for a group that met another writer


class TraceWriteError(Exception):
    """The record could not be written; the text says why, in a sentence."""


@dataclass(slots=True, kw_only=True)
class Submission:
    """One append on its way into the record, and its outcome."""

    trace_id: int
    messages: Sequence[OmniMessage]
    also: Callable[[], object] | None = None
    after: Callable[[list[StoredEvent]], object] | None = None
    checkpoint: bool = False
    drafts: list[Draft] = field(default_factory=list)
    stored: list[StoredEvent] = field(default_factory=list)
    error: Exception | None = None

    @property
    def is_plain(self) -> bool:
        """Return whether nothing of it can fail alone."""
        return self.also is None and self.after is None


@dataclass(slots=True)
class _Uncovered:
    """Events of a Trace since the last checkpoint made here."""

    count: int = 0
    since: float = field(default_factory=time.monotonic)

    @property
    def is_due(self) -> bool:
        age = time.monotonic() - self.since
        return self.count >= CHECKPOINT_EVENTS or age >= CHECKPOINT_S


class GroupCommit:
    """Writes groups on the calling thread's connection; one per writer."""

    def __init__(self, using: str) -> None:
        self._using = using
        self._uncovered: dict[int, _Uncovered] = {}

    def write(self, group: Sequence[Submission]) -> None:
        """Write a group; whatever happens, each submission has its outcome."""
        ready = [submission for submission in group if _is_drafted(submission)]
        try:
            self._write_together(ready)
        except Exception as error:
            logger.exception("a group of %d appends failed", len(ready))
            connections[self._using].close_if_unusable_or_obsolete()
            for submission in ready:
                submission.error = _refused(error)

    def _write_together(self, group: Sequence[Submission]) -> None:
        for attempt in range(1, _TRIES + 1):
            try:
                self._commit(group)
            except (DatabaseError, HeadConflict) as error:
                if database_errors.lasting_cause(error):
                    raise
                if not _met_another_writer(error):
                    self._write_apart(group, error)
                    return
                if attempt == _TRIES:
                    raise
            else:
                return

    def _write_apart(self, group: Sequence[Submission], error: Exception) -> None:
        """One of the group cannot be stored: find it, the others go on."""
        if len(group) == 1:
            group[0].error = _refused(error)
            return
        for submission in group:
            self._write_together([submission])

    def _commit(self, group: Sequence[Submission]) -> None:
        if not group:
            return
        due = {trace_id for trace_id, each in self._uncovered.items() if each.is_due}
        with transaction.atomic(using=self._using):
            batch = Batch(self._using)
            for submission in group:
                submission.error, submission.stored = None, []
                if submission.is_plain:
                    _add(batch, submission)
                else:
                    batch.flush()
                    self._add_in_savepoint(batch, submission)
            batch.flush()
            done = [submission for submission in group if submission.error is None]
            due |= {submission.trace_id for submission in done if submission.checkpoint}
            # Last, so that nobody who waits for a Trace holds up the whole instance
            # at the chain of checkpoints.
            touched = {submission.trace_id for submission in done}
            signed = [trace_id for trace_id in due & touched if self._sign(trace_id)]
        for submission in done:
            self._count(submission)
        for trace_id in signed:
            self._uncovered.pop(trace_id, None)

    def _sign(self, trace_id: int) -> bool:
        try:
            write_checkpoint(trace_id, using=self._using)
        except (SigningKeyError, LookupError):
            # The events matter more; what is not vouched for, verifying tells.
            logger.exception("no checkpoint of the Trace %d could be signed", trace_id)
            return False
        return True

    def _add_in_savepoint(self, batch: Batch, submission: Submission) -> None:
        try:
            with transaction.atomic(using=self._using):
                if submission.also is not None:
                    submission.also()
                stored = _insert(batch, submission)
                if submission.after is not None:
                    submission.after(stored)
            submission.stored = stored
        except Exception as error:
            batch.forget(submission.trace_id)
            if self._is_transaction_lost(error):
                raise
            submission.error = error

    def _is_transaction_lost(self, error: Exception) -> bool:
        if connections[self._using].needs_rollback or _met_another_writer(error):
            return True
        is_refusal = isinstance(error, DatabaseError)
        return is_refusal and database_errors.lasting_cause(error) is not None

    def _count(self, submission: Submission) -> None:
        """Note what no checkpoint covers yet."""
        if not submission.stored:
            return
        uncovered = self._uncovered.setdefault(submission.trace_id, _Uncovered())
        uncovered.count += len(submission.stored)


def _add(batch: Batch, submission: Submission) -> None:
    try:
        submission.stored = batch.add(submission.trace_id, submission.drafts)
    except LookupError as error:
        submission.error = error


def _insert(batch: Batch, submission: Submission) -> list[StoredEvent]:
    """Insert at once; what the database says to it is no error of the caller's."""
    try:
        stored = batch.add(submission.trace_id, submission.drafts)
        batch.flush()
    except DatabaseError as error:
        if database_errors.lasting_cause(error) or _met_another_writer(error):
            raise
        raise _refused(error) from error
    return stored


def _is_drafted(submission: Submission) -> bool:
    try:
        submission.drafts = [draft(message) for message in submission.messages]
    except Exception as error:
        submission.error = error
        return False
    return True


def _met_another_writer(error: Exception) -> bool:
    if isinstance(error, HeadConflict):
        return True
    return database_errors.is_worth_another_try(error)


def _refused(error: Exception) -> Exception:
    if isinstance(error, (DatabaseError, OSError)):
        refusal = TraceWriteError(database_errors.sentence(error))
    elif isinstance(error, HeadConflict):
        refusal = TraceWriteError(
            "The record could not be written: another writer keeps taking its place."
        )
    else:
        return error
    refusal.__cause__ = error
    return refusal
