"""Run one task in the terminal: a session like those on the web, without a server."""

from __future__ import annotations

import asyncio
import io
import sys
from typing import Any

from django.core.management.base import BaseCommand, CommandParser
from django.db import connections

from penguin_web import preparation
from penguin_web.process_protection import protect_process
from sessions_app.models import ApprovalMode
from sessions_app.runtime.sessions import LEVELS


class Command(BaseCommand):
    """`run_agent -m TEXT`; exits with 0, 1 failed, 2 usage, 130 interrupted."""

    help = (
        "Run one task in the terminal. Its session is kept like any other. Commands "
        "that still run when the task ends are ended."
    )
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        """Take the message, and what a new session may be given."""
        parser.add_argument(
            "-m", "--message", required=True, metavar="TEXT", help="what to do"
        )
        parser.add_argument("--project", metavar="P", help="slug; left out: default")
        parser.add_argument("--agent", metavar="A")
        parser.add_argument("--model", metavar="PROVIDER/ID")
        parser.add_argument("--thinking", choices=LEVELS)
        parser.add_argument(
            "--workspace", metavar="DIR", help="left out: the current directory"
        )
        parser.add_argument(
            "--approve",
            choices=ApprovalMode.values,
            default=ApprovalMode.ALLOW_ALL.value,
            help="who decides on calls; left out: %(default)s",
        )
        parser.add_argument(
            "--json",
            action="store_true",
            help="print OmniMessages, one a line, and nothing else",
        )

    def handle(self, **options: Any) -> None:
        """Run it and exit."""
        try:
            sys.exit(self._run(options))
        except KeyboardInterrupt:
            sys.exit(130)

    def _run(self, options: dict[str, Any]) -> int:
        # Only this command needs the runtime's engine in memory.
        from sessions_app import runtime, terminal

        protect_process()  # keys in the environment are none of a command's business
        preparation.make_keys()
        preparation.migrate()
        preparation.guard_record()
        runtime.ensure_default_project()
        connections.close_all()
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(encoding="utf-8", errors="replace")
        wanted = terminal.Wanted(
            message=options["message"],
            project=options["project"],
            agent=options["agent"],
            model=options["model"],
            thinking_level=options["thinking"],
            workspace=options["workspace"],
            approval_mode=options["approve"],
            is_json=options["json"],
        )
        answers = terminal.Answers(sys.stdin.fileno() if sys.stdin else None)
        running = terminal.run_task(
            wanted, out=sys.stdout, err=sys.stderr, answers=answers
        )
        return asyncio.run(running)
