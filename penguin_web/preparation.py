"""What a process does once before it serves: database, keys, static files."""

from __future__ import annotations

import fcntl
import hashlib
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import django
from django.conf import settings
from django.core.management import call_command
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from penguin_web import __version__
from penguin_web.keys import make_key
from traces_app.append_only import create_triggers, triggers_in_place
from traces_app.signing import signing_key

logger = logging.getLogger(__name__)


def migrate() -> None:
    """Bring the database up to date; asks first, for a full run takes a second.

    One process of a data folder at a time: a server and several tasks in terminals
    may be the first ones together.
    """
    with _alone("migrate"):
        executor = MigrationExecutor(connection)
        if executor.migration_plan(executor.loader.graph.leaf_nodes()):
            call_command("migrate", verbosity=0, interactive=False)


@contextmanager
def _alone(name: str) -> Iterator[None]:
    """Wait for other processes of this data folder to leave the block."""
    folder = Path(settings.DATA_DIR) / "run"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    with (folder / f"{name}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def guard_record() -> None:
    """Put back triggers by which the database refuses to change the record."""
    missing = triggers_in_place()
    if missing:
        logger.warning("the record was not protected: %s put back", ", ".join(missing))
        create_triggers()


def make_keys() -> None:
    """Make the keys that are missing, now and not when somebody needs them."""
    signing_key()
    if not settings.SECRETS_KEY_FILE.exists():
        make_key(settings.SECRETS_KEY_FILE)


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
