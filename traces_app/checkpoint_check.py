"""Checks what ties Traces together: the checkpoints, their witness, the journal.

One walk over all checkpoints: numbers without a gap, each hash in the next one,
each signature, columns that repeat the text. Then the witness file: what it saw must
stand in the database still, which a rolled-back database or a dropped session fails.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from traces_app import chain, witness
from traces_app.findings import InstanceReport
from traces_app.integrity import JOURNAL, Statement, statement_of_line
from traces_app.journal import columns_of
from traces_app.models import Checkpoint, JournalEntry, Trace
from traces_app.signing import is_signed, known_keys

_NOTHING_BEFORE = bytes(32)
_BATCH = 1000


@dataclass(slots=True)
class CheckpointCheck:
    """`run` fills the report, and `heads`: session id -> signed seq -> head hash."""

    report: InstanceReport = field(default_factory=InstanceReport)
    heads: dict[str, dict[int, str]] = field(default_factory=dict)
    _keys: dict[str, bytes] = field(default_factory=known_keys)
    _texts: dict[int, str] = field(default_factory=dict)  # number -> signed text

    def run(self) -> InstanceReport:
        """Check checkpoints, witness and journal; the Traces are left to others."""
        # The witness first: a line is written after its commit, so whatever it
        # holds now must be found in the database that is read afterwards.
        lines = list(witness.lines())
        self._check_checkpoints()
        self._check_witness(lines)
        self._check_sessions()
        self._check_journal()
        return self.report

    def _check_checkpoints(self) -> None:
        number, previous = 0, _NOTHING_BEFORE
        for row in Checkpoint.objects.order_by("number").iterator(_BATCH):
            number += 1
            if row.number != number:
                self.report.add("", f"checkpoint {number} is missing")
                number = row.number
            previous = self._check_checkpoint(row, previous)
            self.report.checkpoints += 1

    def _check_checkpoint(self, row: Checkpoint, previous: bytes) -> bytes:
        """Check one checkpoint against the one before; return its hash."""
        digest = chain.text_digest(row.text)
        try:
            said = Statement.from_text(row.text)
        except ValueError:
            self.report.add("", f"checkpoint {row.number} cannot be read")
            return digest
        self._texts[row.number] = row.text
        name = said.trace
        what = f"checkpoint {row.number} of {name}"
        if said.key_id not in self._keys:
            self.report.add(name, f"{what} was signed with another key, {said.key_id}")
        elif not self._is_signed(said, bytes(row.signature), row.text):
            self.report.add(name, f"{what} was changed: its signature does not fit")
        elif said.number != row.number or said.seq != row.seq:
            self.report.add(name, f"the columns of {what} were changed")
        elif said.previous != previous.hex():
            self.report.add("", f"{what} does not follow from the one before")
        elif bytes(row.hash) != digest:
            self.report.add(name, f"the hash of {what} was changed")
        else:
            self.heads.setdefault(name, {})[said.seq] = said.head_hash
        return digest

    def _is_signed(self, said: Statement, signature: bytes, text: str) -> bool:
        public = self._keys.get(said.key_id)
        return public is not None and is_signed(public, signature, text)

    def _check_witness(self, lines: list[witness.Line]) -> None:
        seen: set[int] = set()
        for place, line in lines:
            said = statement_of_line(line) if line is not None else None
            if line is None or said is None:
                self.report.notes.append(f"line {place} of the witness is unreadable")
                continue
            self.report.witness_lines += 1
            statement, text, signature = said
            seen.add(statement.number)
            if not self._is_signed(statement, signature, text):
                self.report.add(
                    statement.trace, f"line {place} of the witness was changed"
                )
            elif self._texts.get(statement.number) != text:
                signed = self.heads.setdefault(statement.trace, {})
                signed.setdefault(statement.seq, statement.head_hash)
                self.report.add(
                    statement.trace,
                    f"the witness saw checkpoint {statement.number} of "
                    f"{statement.trace} at #{statement.seq}, the database does not "
                    "hold it: it was rolled back, or the session was dropped",
                )
        self._check_witness_coverage(seen)

    def _check_witness_coverage(self, seen: set[int]) -> None:
        if not seen:
            self.report.notes.append(
                f"no witness: {witness.witness_path()} holds no checkpoint, so a "
                "database rolled back as a whole would not be noticed"
            )
            return
        if (first := min(seen)) > 1:
            self.report.notes.append(f"the witness begins at checkpoint {first}")
        lacking = sorted(n for n in self._texts if n > first and n not in seen)
        if lacking:
            self.report.notes.append(
                f"the witness lacks {len(lacking)} checkpoints from {lacking[0]} on: its "
                "lines were removed, or the server was killed before it wrote them"
            )

    def _check_sessions(self) -> None:
        """Every session that was ever signed must still be there."""
        names = set(self.heads) - {JOURNAL}
        for name in names - _existing(names):
            seq = max(self.heads[name])
            self.report.add(
                name,
                f"the session {name} is gone or was renamed; a checkpoint signed it "
                f"at #{seq}",
                1,
            )

    def _check_journal(self) -> None:
        seq, previous = 0, chain.START
        signed = self.heads.get(JOURNAL, {})
        for entry in JournalEntry.objects.order_by("seq").iterator(_BATCH):
            seq += 1
            if entry.seq != seq:
                self.report.add(JOURNAL, f"journal entry #{seq} is missing", seq)
                seq = entry.seq
            elif not _follows(entry, previous):
                self.report.add(JOURNAL, f"journal entry #{seq} was changed", seq)
            previous = bytes(entry.hash)
            if signed.get(seq, previous.hex()) != previous.hex():
                self.report.add(JOURNAL, f"journal entry #{seq} was hashed anew", seq)
        if max(signed, default=0) > seq:
            self.report.add(
                JOURNAL, f"journal entries from #{seq + 1} on are missing", seq + 1
            )


def _follows(entry: JournalEntry, previous: bytes) -> bool:
    digest = chain.body_digest(bytes(entry.salt), entry.text.encode())
    header = chain.header(JOURNAL, entry.seq, entry.timestamp, entry.kind, digest)
    try:
        said = columns_of(entry.text)
    except (ValueError, KeyError, TypeError):
        return False
    return (
        digest == bytes(entry.body_sha256)
        and chain.link(previous, header) == bytes(entry.hash)
        and all(getattr(entry, name) == value for name, value in said.items())
    )


def _existing(names: set[str]) -> set[str]:
    found: set[str] = set()
    wanted = sorted(names)
    for start in range(0, len(wanted), _BATCH):
        page = wanted[start : start + _BATCH]
        found.update(
            Trace.objects.filter(session_id__in=page).values_list(
                "session_id", flat=True
            )
        )
    return found
