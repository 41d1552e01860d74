"""Verifies the record of one session, or of all, and ends with what it found."""

from __future__ import annotations

import getpass
import sys
from typing import Any

from django.core.management.base import BaseCommand, CommandParser
from django.db import DatabaseError

from traces_app import journal
from traces_app.findings import ExitCode, Finding, Report
from traces_app.signing import SigningKeyError
from traces_app.verify import Verifier, protection


class Command(BaseCommand):
    """`verify_trace [SESSION | --all]`."""

    help = (
        "Check that the record is intact (hashes, signatures, witness) and complete "
        "(everything that began has its end). Exit code: 0 both, 1 tampered, "
        "2 incomplete, 3 unreadable."
    )
    # The record must be checkable whatever else is wrong with the installation.
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        which = parser.add_mutually_exclusive_group()
        which.add_argument("session", nargs="?", help="default: all")
        which.add_argument("--all", action="store_true")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            code = self._verify(options["session"])
        except (DatabaseError, LookupError, OSError, SigningKeyError) as error:
            self.stderr.write(f"unreadable: {error}")
            code = ExitCode.UNREADABLE
        if code is not ExitCode.GOOD:
            sys.exit(code)

    def _verify(self, session_id: str | None) -> ExitCode:
        verifier = Verifier()
        if session_id is None:
            reports = verifier.verify_all()
            findings = verifier.instance.findings
        else:
            reports = iter([verifier.verify(session_id)])
            findings = []  # those that concern the session are in its report
        codes = [self._show(report) for report in reports]
        for name, finding in findings:
            self.stdout.write(f"{name or 'instance'}: NOT intact: {finding.sentence}")
        instance = verifier.instance
        self.stdout.write(
            f"instance: {instance.checkpoints} checkpoints, "
            f"{instance.witness_lines} witness lines"
        )
        for note in (*instance.notes, *protection()):
            self.stdout.write(f"note: {note}")
        if findings:
            codes.append(ExitCode.TAMPERED)
        _note_in_journal(session_id)
        # Tampering outweighs what is incomplete.
        worst = (ExitCode.TAMPERED, ExitCode.INCOMPLETE)
        return next((code for code in worst if code in codes), ExitCode.GOOD)

    def _show(self, report: Report) -> ExitCode:
        self.stdout.write(
            f"{report.session_id}: {_verdict('intact', report.intact)}; "
            f"{_verdict('complete', report.complete)}"
        )
        open_ = f"; in progress: {report.open}" if report.open else ""
        erased = f"; {report.erased} bodies erased" if report.erased else ""
        self.stdout.write(
            f"  {report.events} events, head {report.head_hash or 'none'}, covered by "
            f"a checkpoint up to #{report.covered_to}{open_}{erased}"
        )
        return report.exit_code


def _verdict(word: str, finding: Finding | None) -> str:
    if finding is None:
        return word
    place = f" (first bad event #{finding.seq})" if finding.seq else ""
    return f"NOT {word}{place}: {finding.sentence}"


def _note_in_journal(session_id: str | None) -> None:
    """A database that may only be read can still be verified."""
    try:
        details = {"via": "cli", "as": getpass.getuser()}
        journal.record("verify", "", session_id=session_id or "", details=details)
    except DatabaseError:
        return
