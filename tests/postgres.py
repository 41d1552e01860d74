"""A PostgreSQL server for tests: a socket in a temporary folder, gone afterwards."""

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

NO_POSTGRES = "No PostgreSQL on this machine: NO POSTGRESQL TEST WAS RUN."
FAST = "-c listen_addresses='' -c fsync=off -c full_page_writes=off"
DURABLE = "-c listen_addresses=''"


def bin_folder() -> Path | None:
    """Return where initdb and pg_ctl are, None where there is no PostgreSQL."""
    on_path = shutil.which("initdb")
    if on_path:
        return Path(on_path).resolve().parent
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=_version)
    return found[-1].parent if found else None


def _version(initdb: Path) -> int:
    name = initdb.parts[-3]
    return int(name) if name.isdigit() else 0


@contextlib.contextmanager
def cluster(*, options: str = FAST) -> Iterator[Path]:
    """Run a server of its own and yield the folder of its socket.

    PostgreSQL refuses to run as root, so root hands it to the user `postgres`.
    Raises FileNotFoundError where there is no PostgreSQL or no such user.
    """
    programs = bin_folder()
    if programs is None:
        raise FileNotFoundError(NO_POSTGRES)
    as_user: list[str] = []
    with tempfile.TemporaryDirectory(prefix="penguin-pg-") as name:
        folder = Path(name)
        if os.geteuid() == 0:
            try:
                shutil.chown(folder, "postgres")
            except LookupError:
                raise FileNotFoundError(NO_POSTGRES) from None
            as_user = ["runuser", "-u", "postgres", "--"]
        folder.chmod(0o755)

        def run(program: str, *arguments: str) -> None:
            command = [*as_user, str(programs / program), *arguments]
            subprocess.run(
                command, check=True, cwd=folder, stdout=subprocess.DEVNULL, timeout=120
            )

        data = str(folder / "data")
        run("initdb", "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "-N")
        started = ["-D", data, "-l", str(folder / "log"), "-o"]
        run("pg_ctl", "start", "-w", *started, f"{options} -k {folder}")
        try:
            yield folder
        finally:
            run("pg_ctl", "stop", "-w", "-m", "immediate", "-D", data)
