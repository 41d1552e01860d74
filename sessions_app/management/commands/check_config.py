"""Checks a document in a file without saving anything."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from sessions_app.config.project_config import check_document
from sessions_app.environment.registry import implemented_tools
from sessions_app.management.config_files import read_file, refuse


class Command(BaseCommand):
    """`check_config FILE`."""

    help = "Check an agent or project document. Needs no database."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file")

    def handle(self, *args: Any, **options: Any) -> None:
        name = options["file"]
        text = read_file(self, name)
        problems = check_document(text, implemented=frozenset(implemented_tools()))
        if problems:
            refuse(self, name, problems)
        self.stdout.write(f"{name}: sound")
