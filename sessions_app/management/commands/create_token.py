"""Makes an API token; its text is the last word on standard output."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError, CommandParser

from sessions_app import tokens
from sessions_app.models import Project


class Command(BaseCommand):
    """`create_token USERNAME [--project P] [--scope metrics]`."""

    help = "Make an API token that acts as a user. It is shown once and stored hashed."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("username")
        parser.add_argument("--project", help="slug; the token sees this project only")
        parser.add_argument(
            "--scope",
            choices=[tokens.METRICS_SCOPE],
            default="",
            help="good for nothing else",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        user = User.objects.filter(username=options["username"]).first()
        if user is None:
            raise CommandError(f"There is no user {options['username']}.")
        project = None
        if options["project"]:
            project = Project.objects.filter(slug=options["project"]).first()
            if project is None:
                raise CommandError(f"There is no project {options['project']}.")
        _, text = tokens.issue(user, project=project, scope=options["scope"])
        where = f"project {project}" if project else "every project of the user"
        self.stdout.write(f"Token of {user} for {where}, shown only now: {text}")
