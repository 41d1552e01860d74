"""Imports a JSONL Trace into a project."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any, BinaryIO

from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError, CommandParser

from sessions_app.models import Project
from sessions_app.runtime import configs
from traces_app.imports import ImportRefused, TraceExists, import_trace

_CHUNK = 1024 * 1024  # bytes


class Command(BaseCommand):
    """`import_trace FILE --project P [--damaged mark]`."""

    help = (
        "Import a trace.jsonl as a record of its own. It is all or nothing; with "
        "--damaged mark a bad line becomes a visible event in its place."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", help="- reads standard input")
        parser.add_argument("--project", required=True)
        parser.add_argument("--damaged", choices=["refuse", "mark"], default="refuse")

    def handle(self, *args: Any, **options: Any) -> None:
        call_command("migrate", verbosity=0, interactive=False)
        configs.ensure_default_project()
        name, project = options["file"], options["project"]
        if not Project.objects.filter(slug=project).exists():
            raise CommandError(f"There is no project {project}.")
        try:
            with _opened(name) as file:
                trace = import_trace(
                    _chunks(file),
                    project=project,
                    by="",
                    file_name=Path(name).name,
                    damaged=options["damaged"],
                )
        except OSError as error:
            raise CommandError(f"{name} cannot be read: {error}") from error
        except TraceExists as error:
            raise CommandError(str(error)) from error
        except ImportRefused as error:
            for problem in error.problems:
                self.stderr.write(f"{name}:{problem.line}: {problem.reason}")
            raise CommandError("Nothing was imported.") from error
        self.stdout.write(trace.session_id)


def _opened(name: str) -> Any:
    if name == "-":
        return nullcontext(sys.stdin.buffer)
    return Path(name).open("rb")


def _chunks(file: BinaryIO) -> Iterator[bytes]:
    while chunk := file.read(_CHUNK):
        yield chunk
