"""A real server in a process of its own, with its own data folder and port."""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import httpx

ROOT = Path(__file__).parent.parent
START_S = 30
LISTENS = re.compile(r"listens on (http://\S+)")


@dataclass
class Site:
    """One installation: start, stop, kill and ask it as often as a test likes."""

    folder: Path
    password: str
    username: str = "admin"
    variables: dict[str, str] = field(default_factory=dict)
    base_url: str = ""
    process: subprocess.Popen[bytes] | None = None

    @property
    def data_dir(self) -> Path:
        return self.folder / "data"

    @property
    def workspaces_dir(self) -> Path:
        return self.folder / "workspaces"

    @property
    def log(self) -> Path:
        """Everything the server printed, of every start."""
        return self.folder / "server.log"

    @property
    def environment(self) -> dict[str, str]:
        home = self.folder / "home"
        home.mkdir(parents=True, exist_ok=True)
        return {
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "penguin_web.settings",
            "PENGUIN_DATA_DIR": str(self.data_dir),
            "PENGUIN_WORKSPACES_DIR": str(self.workspaces_dir),
            "HOME": str(home),
            "PYTHONUNBUFFERED": "1",
            **self.variables,
        }

    def manage(self, *arguments: str, **options) -> subprocess.CompletedProcess:
        """Run one command of manage.py on this installation."""
        options = {"capture_output": True, "text": True, "timeout": 60} | options
        command = [sys.executable, str(ROOT / "manage.py"), *arguments]
        return subprocess.run(command, env=self.environment, cwd=ROOT, **options)

    def token(self, username: str = "", *more: str) -> str:
        """Return a new API token of a user."""
        done = self.manage("create_token", username or self.username, *more)
        assert done.returncode == 0, done.stderr
        return done.stdout.split()[-1]

    def api(self) -> httpx.Client:
        """Return a client of the JSON API with a token of the admin."""
        return httpx.Client(
            base_url=f"{self.base_url}/api/v1/",
            headers={"Authorization": f"Bearer {self.token()}"},
            timeout=30,
            trust_env=False,
        )

    def start(self) -> None:
        """Start the server and return when it listens; a restart keeps the port."""
        port = self.base_url.rpartition(":")[2] or "0"
        command = [sys.executable, str(ROOT / "manage.py"), "serve", "--port", port]
        self.folder.mkdir(parents=True, exist_ok=True)
        seen = self.log.stat().st_size if self.log.exists() else 0
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                command,
                env=self.environment,
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        deadline = time.monotonic() + START_S
        while time.monotonic() < deadline:
            printed = self.log.read_bytes()[seen:].decode(errors="replace")
            if found := LISTENS.search(printed):
                self.base_url = found[1]
                return
            if self.process.poll() is not None:
                raise AssertionError(f"The server ended at its start:\n{printed}")
            time.sleep(0.02)
        self.kill()
        raise AssertionError(f"The server did not listen in time:\n{printed}")

    def stop(self) -> int:
        """End the server as an operator does, and return its exit code."""
        assert self.process
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=30)

    def kill(self) -> None:
        """End the server as a power cut does."""
        assert self.process
        self.process.kill()
        self.process.wait(timeout=30)

    def restart(self) -> None:
        """Stop, then start on the same port."""
        self.stop()
        self.start()

    def remove(self) -> None:
        """Leave nothing behind, whatever state the test left it in."""
        if self.process and self.process.poll() is None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.stop()
            if self.process.poll() is None:
                self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)


def install(folder: Path) -> Site:
    """Make an installation with a first admin, migrated and with static files."""
    site = Site(folder=folder, password="")
    done = site.manage("first_admin")
    assert done.returncode == 0, done.stderr
    site.password = done.stdout.split()[-1]
    site.start()
    assert site.stop() == 0, site.log.read_text()
    site.log.unlink()
    return site


def copy(site: Site, folder: Path, **variables: str) -> Site:
    """Return a second installation like the first; faster than making one."""
    folder.mkdir(parents=True)
    shutil.copytree(site.data_dir, folder / "data")
    return Site(folder=folder, password=site.password, variables=variables)
