"""Saves a document from a file as the new version of a project or an agent."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import ValidationError
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError, CommandParser

from sessions_app.config.documents import DocumentError
from sessions_app.config.project_config import check_document
from sessions_app.config.schema_check import DocumentKind, kind_of
from sessions_app.config.yaml_positions import parse
from sessions_app.management.config_files import read_file, refuse
from sessions_app.models import Agent, Project
from sessions_app.runtime import configs


class Command(BaseCommand):
    """`import_config PROJECT FILE [--agent A] [--reason TEXT]`."""

    help = (
        "Save a document as the newest version. A project document becomes the "
        "project's; an agent document the default agent's, or that of --agent, which "
        "is made if there is none."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("project")
        parser.add_argument("file")
        parser.add_argument("--agent", help="name; the file is an agent document")
        parser.add_argument("--reason", default="")

    def handle(self, *args: Any, **options: Any) -> None:
        call_command("migrate", verbosity=0, interactive=False)
        configs.ensure_default_project()
        project = Project.objects.filter(slug=options["project"]).first()
        if project is None:
            raise CommandError(f"There is no project {options['project']}.")
        text = read_file(self, options["file"])
        kind: DocumentKind | None = kind_of(parse(text).value)
        if options["agent"]:
            kind = "agent"
        if kind is None:
            refuse(self, options["file"], check_document(text))
        try:
            target, number = self._save(project, text, kind, options)
        except DocumentError as error:
            refuse(self, options["file"], error.problems)
        except ValidationError as error:
            raise CommandError("; ".join(error.messages)) from None
        self.stdout.write(f"{target}: version {number}")

    def _save(
        self,
        project: Project,
        text: str,
        kind: DocumentKind,
        options: dict[str, Any],
    ) -> tuple[str, int]:
        reason = options["reason"] or f"import of {options['file']}"
        target: Project | Agent = project
        if kind == "agent":
            name = options["agent"] or configs.current(project)[0].default_agent
            agent = project.agents.filter(name=name).first()
            if agent is None:
                configs.create_agent(project, name, text=text, reason=reason)
                return f"agent {name} of {project}", 1
            target = agent
        _, base = configs.document_text(target)
        version = configs.save(target, text, base_version=base, reason=reason)
        what = (
            f"agent {target} of {project}" if kind == "agent" else f"project {target}"
        )
        return what, version.number
