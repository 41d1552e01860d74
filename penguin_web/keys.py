"""Keys on disk: made on first start, readable by the server's user alone."""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured


def key_text(given: str, default: Path, *, name: str) -> str:
    """Return the key in the file `given`, or the one at `default`, made if missing.

    Raises a sentence that names the variable `name` when there is no key to read.
    """
    path = Path(given) if given else default
    try:
        if not given and not path.exists():
            make_key(path)
        text = path.read_text().strip()
    except OSError as error:
        raise ImproperlyConfigured(
            f"{name}: {path} cannot be read ({error.strerror})."
        ) from None
    if not text:
        raise ImproperlyConfigured(f"{name}: {path} is empty; it must hold a key.")
    return text


def make_key(path: Path) -> None:
    """Write a whole key or nothing: two first starts at once must agree on one."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    draft = path.with_name(f"{path.name}.{secrets.token_hex(4)}")
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "w") as file:
        file.write(secrets.token_urlsafe(48))
    with suppress(FileExistsError):
        path.hardlink_to(draft)
    draft.unlink()
