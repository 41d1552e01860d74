"""Typed reading of environment variables; used by settings.py and by nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import environ
from django.core.exceptions import ImproperlyConfigured

YES = frozenset({"1", "true", "yes", "on"})
NO = frozenset({"0", "false", "no", "off"})


class Variables:
    """Read variables of the process; a wrong value raises a sentence that names it.

    An empty variable counts as one that is not set, so that a copy of
    `.env.example` changes nothing. The sentences never repeat a value that may hold a
    password.
    """

    def __init__(self, env_file: Path) -> None:
        self._env = environ.Env()
        if env_file.is_file():
            # What the process was given wins over the file.
            self._env.read_env(env_file)

    def text(self, name: str, default: str = "") -> str:
        """Return the text of a variable."""
        return str(self._env.str(name, default="")).strip() or default

    def flag(self, name: str, *, default: bool = False) -> bool:
        """Return a yes or no; anything that is neither stops the start."""
        text = self.text(name).lower()
        if not text:
            return default
        if text in YES | NO:
            return text in YES
        raise ImproperlyConfigured(
            f"{name} is {text!r}, which is neither yes nor no; use 1 or 0."
        )

    def number(self, name: str, default: int, *, low: int, high: int) -> int:
        """Return a whole number between `low` and `high`."""
        text = self.text(name)
        if not text:
            return default
        if text.isascii() and text.isdigit() and low <= int(text) <= high:
            return int(text)
        raise ImproperlyConfigured(
            f"{name} is {text!r}; use a whole number from {low} to {high}."
        )

    def names(self, name: str, default: list[str]) -> list[str]:
        """Return a list written with commas."""
        parts = [part.strip() for part in self.text(name).split(",")]
        return [part for part in parts if part] or default

    def folder(self, name: str, default: Path) -> Path:
        """Return an absolute folder; it need not exist."""
        return Path(self.text(name, str(default))).expanduser().resolve()

    def origins(self, name: str) -> list[str]:
        """Return origins such as `https://penguin.example.org`."""
        origins = [origin.rstrip("/") for origin in self.names(name, [])]
        for origin in origins:
            scheme, separator, host = origin.partition("://")
            if scheme not in {"http", "https"} or not separator or "/" in host:
                raise ImproperlyConfigured(
                    f"{name} holds {origin!r}; write each origin as https://HOST."
                )
        return origins

    def database(self, name: str, default: Path) -> dict[str, Any]:
        """Return Django's description of an SQLite or PostgreSQL database."""
        url = self.text(name, f"sqlite:///{default}")
        if url.partition("://")[0] not in {"sqlite", "postgres", "postgresql"}:
            raise ImproperlyConfigured(
                f"{name} names an unknown kind of database; "
                "use postgresql://USER:PASSWORD@HOST/NAME or leave it empty for SQLite."
            )
        try:
            description: dict[str, Any] = self._env.db_url_config(url)
        except (ImproperlyConfigured, ValueError):
            raise ImproperlyConfigured(
                f"{name} cannot be read; use postgresql://USER:PASSWORD@HOST/NAME."
            ) from None
        if not description.get("NAME"):
            raise ImproperlyConfigured(f"{name} names no database after the host.")
        return description


def usable_folder(folder: Path, *, name: str) -> Path:
    """Return the folder, made if it is missing; raise when it cannot be written to."""
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        probe = folder / ".write-test"
        probe.touch()
        probe.unlink(missing_ok=True)
    except OSError as error:
        raise ImproperlyConfigured(
            f"{folder} cannot be written to ({error.strerror}); "
            f"set {name} to a folder that belongs to the server's user."
        ) from None
    return folder
