"""What a process does once before it serves: database, default project, static files."""

from __future__ import annotations

import hashlib
from pathlib import Path

import django
from django.conf import settings
from django.core.management import call_command
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from penguin_web import __version__


def migrate() -> None:
    """Bring the database up to date; asks first, for a full run takes a second."""
    executor = MigrationExecutor(connection)
    if executor.migration_plan(executor.loader.graph.leaf_nodes()):
        call_command("migrate", verbosity=0, interactive=False)


def collect_static() -> None:
    """Collect static files anew when the version or one of the files changed."""
    mark = Path(settings.DATA_DIR) / "static.version"
    version = _static_version()
    if mark.exists() and mark.read_text() == version:
        return
    call_command("collectstatic", verbosity=0, interactive=False, clear=True)
    mark.write_text(version)


def _static_version() -> str:
    digest = hashlib.sha256(f"{__version__} {django.__version__}".encode())
    for folder in map(Path, settings.STATICFILES_DIRS):
        for path in sorted(folder.rglob("*")):
            stat = path.stat()
            name = path.relative_to(folder)
            digest.update(f"{name} {stat.st_size} {stat.st_mtime_ns}\n".encode())
    return digest.hexdigest()
