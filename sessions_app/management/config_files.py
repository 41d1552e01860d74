"""Documents in files: read exactly, and their problems told with the file's name."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import NoReturn

from django.core.management.base import BaseCommand, CommandError

from sessions_app.config.yaml_positions import Problem


def read_file(command: BaseCommand, name: str) -> str:
    """Return the file's text, line ends as they are; without one there is no going on."""
    try:
        return Path(name).read_bytes().decode("utf-8")
    except OSError as error:
        raise CommandError(f"{name}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        before = error.object[: error.start]
        problem = Problem(
            path="(document)",
            line=before.count(b"\n") + 1,
            column=len(before) - before.rfind(b"\n"),
            message="is not UTF-8",
        )
        refuse(command, name, [problem])


def refuse(command: BaseCommand, name: str, problems: Iterable[Problem]) -> NoReturn:
    """Tell the problems one per line, as editors understand them, and exit with 1."""
    for problem in problems:
        command.stderr.write(f"{name}:{problem}")
    sys.exit(1)
