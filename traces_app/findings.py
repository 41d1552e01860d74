"""What a check of the record found: two verdicts, apart, with the first bad place."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum


class ExitCode(IntEnum):
    """How `verify_trace` ends; the bundle's verifier ends the same way."""

    GOOD = 0
    TAMPERED = 1
    INCOMPLETE = 2
    UNREADABLE = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """The first place where a verdict fails, and why, in a sentence."""

    seq: int | None  # None: not a matter of one event
    sentence: str


@dataclass(slots=True, kw_only=True)
class Report:
    """The verdicts on one Trace; None is good."""

    session_id: str
    intact: Finding | None = None
    complete: Finding | None = None
    events: int = 0
    head_hash: str = ""
    covered_to: int = 0  # last seq that a checkpoint vouches for
    open: str = ""  # what is still in progress, in words; empty when nothing is
    erased: int = 0  # bodies erased by authorised people

    @property
    def is_intact(self) -> bool:
        """Return whether hashes, signatures and witness agree."""
        return self.intact is None

    @property
    def is_complete(self) -> bool:
        """Return whether everything that began has its end, or may still get it."""
        return self.complete is None

    @property
    def exit_code(self) -> ExitCode:
        """Return what the command ends with; tampering outweighs."""
        if not self.is_intact:
            return ExitCode.TAMPERED
        return ExitCode.GOOD if self.is_complete else ExitCode.INCOMPLETE


@dataclass(slots=True, kw_only=True)
class InstanceReport:
    """What is wrong with the checkpoints, the witness and the journal as a whole.

    `findings` mean tampering, by session id ("" for the instance itself); `notes`
    tell what weakens the proof without being a sign of tampering.
    """

    findings: list[tuple[str, Finding]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    checkpoints: int = 0
    witness_lines: int = 0

    def add(self, session_id: str, sentence: str, seq: int | None = None) -> None:
        """Add a finding about a session, or about the instance."""
        self.findings.append((session_id, Finding(seq=seq, sentence=sentence)))

    def about(self, session_id: str) -> Finding | None:
        """Return the first finding that concerns a session."""
        return next(
            (found for name, found in self.findings if name == session_id), None
        )
