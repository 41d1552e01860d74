"""Verifies the record: a Trace for itself, and all of them with what ties them.

Two verdicts, apart: `intact` (hashes, signatures, witness) and `complete` (no gap,
every call with one decision and one output, every request with its end).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

from django.conf import settings
from django.db import connections

from traces_app import witness
from traces_app.append_only import triggers_in_place
from traces_app.chain_check import ChainCheck
from traces_app.checkpoint_check import CheckpointCheck
from traces_app.erasure import ERASE
from traces_app.findings import ExitCode, Finding, InstanceReport, Report
from traces_app.integrity import JOURNAL
from traces_app.journal import details_of
from traces_app.models import JournalEntry, Trace

__all__ = [
    "ExitCode",
    "Finding",
    "InstanceReport",
    "Report",
    "Verifier",
    "protection",
    "verify_trace",
]

Progress = Callable[[int], None]


def verify_trace(session_id: str, *, progress: Progress | None = None) -> Report:
    """Verify one session's record; raises LookupError when nothing knows of it."""
    return Verifier().verify(session_id, progress=progress)


class Verifier:
    """Checks the instance's checkpoints once, then any number of Traces."""

    def __init__(self) -> None:
        check = CheckpointCheck()
        self.instance = check.run()
        self._heads = check.heads
        self._erasures: dict[str, set[int]] = defaultdict(set)
        for entry in JournalEntry.objects.filter(kind=ERASE).iterator():
            self._erasures[entry.session_id].add(int(details_of(entry)["seq"]))

    def verify(
        self,
        session_id: str,
        *,
        progress: Progress | None = None,
        is_alone: bool = True,
    ) -> Report:
        """Return both verdicts on one Trace; `progress` hears of events checked.

        A missing checkpoint of nobody knows which session counts against each one,
        unless (`is_alone` false) the caller shows `instance` beside the reports.
        """
        trace = Trace.objects.filter(session_id=session_id).first()
        if trace is None:
            gone = self.instance.about(session_id)
            if gone is None:
                raise LookupError(f"There is no record of the session {session_id}.")
            return Report(session_id=session_id, intact=gone, complete=gone)
        heads = self._heads.get(session_id, {})
        check = ChainCheck(
            trace.pk, session_id, heads=heads, erasures=self._erasures[session_id]
        )
        check.run(progress)
        is_open = check.completeness.finish(may_go_on=not trace.is_imported)
        return Report(
            session_id=session_id,
            intact=_first(
                check.finding,
                self.instance.about(session_id),
                self.instance.about("") if is_alone else None,
            ),
            complete=check.completeness.finding,
            events=check.events,
            head_hash=check.head.hex(),
            covered_to=max(heads, default=0),
            open=is_open,
            erased=check.erased,
        )

    def verify_all(self, *, progress: Progress | None = None) -> Iterator[Report]:
        """Yield the report of every Trace, and of those that ought to be there."""
        seen = set()
        after = 0
        while True:
            page = list(
                Trace.objects.filter(pk__gt=after)
                .order_by("pk")[:500]
                .values_list("pk", "session_id")
            )
            for _, session_id in page:
                seen.add(session_id)
                yield self.verify(session_id, progress=progress, is_alone=False)
            if len(page) < 500:
                break
            after = page[-1][0]
        named = {name for name, _ in self.instance.findings}
        for session_id in sorted(named - seen - {"", JOURNAL}):
            yield self.verify(session_id, is_alone=False)


def protection() -> list[str]:
    """Say what the proof is worth here: triggers, and who could forge all of it."""
    lines = []
    missing = triggers_in_place()
    if missing:
        lines.append(
            "the database does not refuse changes: missing or changed triggers "
            + ", ".join(missing)
        )
    folders = {
        Path(settings.SIGNING_KEY_FILE).resolve().parent.parent,
        witness.witness_path().resolve().parent,
    }
    connection = connections["default"]
    if connection.vendor == "sqlite":
        folders.add(Path(connection.settings_dict["NAME"]).resolve().parent)
    if len(folders) == 1:
        lines.append(
            f"database, key and witness lie in one folder, {folders.pop()}: the proof "
            "holds against others, not against who owns that folder"
        )
    else:
        lines.append("database, key and witness do not all lie in one folder")
    return lines


def _first(*findings: Finding | None) -> Finding | None:
    """Return the finding with the lowest seq; one without a seq comes last."""
    found = [finding for finding in findings if finding is not None]
    return min(found, key=lambda f: f.seq or 2**63, default=None)
