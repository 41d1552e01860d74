"""Writes a document in force to standard output, exactly as it was saved."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from sessions_app.models import Agent, Project
from sessions_app.runtime import configs


class Command(BaseCommand):
    """`export_config PROJECT [--agent A]`."""

    help = "Write the document of a project, or of one of its agents."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("project")
        parser.add_argument("--agent", help="this agent's document")

    def handle(self, *args: Any, **options: Any) -> None:
        project = Project.objects.filter(slug=options["project"]).first()
        if project is None:
            raise CommandError(f"There is no project {options['project']}.")
        target: Project | Agent | None = project
        if options["agent"]:
            target = project.agents.filter(name=options["agent"]).first()
        if target is None:
            raise CommandError(f"{project} has no agent {options['agent']}.")
        text, _ = configs.document_text(target)
        self.stdout.write(text, ending="")
