"""Writes a Trace to a file or to standard output."""

from __future__ import annotations

import getpass
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

from django.core.management.base import BaseCommand, CommandError, CommandParser

from traces_app import exports, journal, otlp, reader
from traces_app.models import Trace

FORMATS: dict[str, Callable[[Trace], Iterator[bytes]]] = {
    "jsonl": exports.jsonl,
    "csv": exports.as_csv,
    "otlp": otlp.otlp,
    "bundle": exports.bundle,
}


class Command(BaseCommand):
    """`export_trace SESSION [--format jsonl|csv|otlp|bundle] [-o FILE]`."""

    help = (
        "Export a session's record: jsonl (one message per line), csv, otlp "
        "(OpenTelemetry JSON) or bundle (a zip with the record, its proof and the "
        "program that checks both)."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("session")
        parser.add_argument("--format", choices=list(FORMATS), default="jsonl")
        parser.add_argument("-o", "--output", help="a file; default: standard output")

    def handle(self, *args: Any, **options: Any) -> None:
        trace = reader.trace_for(options["session"])
        if trace is None:
            raise CommandError(
                f"There is no record of the session {options['session']}."
            )
        is_shown = options["output"] is None and sys.stdout.isatty()
        if is_shown and options["format"] == "bundle":
            raise CommandError("A bundle is a zip file: name one with -o FILE.")
        journal.record(
            "export",
            "",
            session_id=trace.session_id,
            project=trace.project,
            details={
                "via": "cli",
                "format": options["format"],
                "as": getpass.getuser(),
            },
        )
        chunks = FORMATS[options["format"]](trace)
        if options["output"] is None:
            _write(chunks, getattr(self.stdout, "buffer", sys.stdout.buffer))
            return
        self._write_file(chunks, Path(options["output"]))

    def _write_file(self, chunks: Iterator[bytes], path: Path) -> None:
        """Write beside the name and rename: a cut export never looks whole."""
        draft = path.with_name(f".{path.name}.{os.getpid()}.part")
        try:
            with draft.open("wb") as file:
                _write(chunks, file)
            draft.replace(path)
        except OSError as error:
            draft.unlink(missing_ok=True)
            raise CommandError(f"{path} cannot be written: {error}") from error


def _write(chunks: Iterator[bytes], file: BinaryIO) -> None:
    for chunk in chunks:
        file.write(chunk)
    file.flush()
