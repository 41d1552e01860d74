"""Serve the site: everything `make run` starts, in one process."""

from __future__ import annotations

import logging
import sys
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser
from django.db import connections

from penguin_web import preparation
from penguin_web.process_protection import protect_process

logger = logging.getLogger(__name__)

EVERYWHERE = frozenset({"0.0.0.0", "::"})  # noqa: S104 (looked for, not listened on)
LOCAL = frozenset({"localhost", "127.0.0.1", "[::1]"})


class Command(BaseCommand):
    """Migrate, make the default project, recover, listen; stop on SIGTERM or Ctrl-C."""

    help = "Serve Penguin Web: pages, API, WebSockets and the agents, in one process."
    # Half of the time of a start; `manage.py check` does the same on demand.
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        """Take the address; the settings hold the defaults."""
        parser.add_argument("--host", default=settings.HOST)
        parser.add_argument("--port", type=int, default=settings.PORT)

    def handle(self, *, host: str, port: int, **options: Any) -> None:
        """Run until a signal comes."""
        # Only this command needs Twisted and the runtime's engine in memory.
        from penguin_web import server
        from sessions_app import runtime

        lock = runtime.ServerLock()
        try:
            listener = server.bind(host, port) if port == 0 else None
            port = listener.getsockname()[1] if listener else port
            # A port that was asked for is taken after the lock: of two starts alike,
            # the data folder is the better reason to refuse.
            if connections["default"].vendor == "sqlite":
                lock.acquire(server.address_of(host, port))
            listener = listener or server.bind(host, port)
        except (server.CannotListen, runtime.AlreadyServed) as error:
            self.stderr.write(str(error))
            sys.exit(1)
        if warning := protect_process():
            logger.warning(warning)
        self._answer_to(host)
        preparation.make_keys()
        preparation.migrate()
        preparation.guard_record()
        runtime.ensure_default_project()
        preparation.collect_static()
        connections.close_all()

        async def start() -> None:
            await runtime.start_supervisor()
            address = server.address_of(host, port)
            self.stdout.write(f"Penguin Web listens on {address} (Ctrl-C stops it)")

        from penguin_web.asgi import application

        web = server.WebServer(
            application, listener, start=start, stop=runtime.stop_supervisor
        )
        web.run()
        lock.release()
        sys.exit(web.exit_code)

    def _answer_to(self, host: str) -> None:
        """Let the address it listens on be a name it answers to."""
        if host not in settings.ALLOWED_HOSTS:
            settings.ALLOWED_HOSTS.append(host)
        if host in EVERYWHERE and set(settings.ALLOWED_HOSTS) <= {*LOCAL, host}:
            logger.warning(
                "The server listens on every address but answers only to localhost: "
                "set ALLOWED_HOSTS to the names people will use."
            )
