"""Keys on disk: made on first start, readable by the server's user alone."""

from __future__ import annotations

import os
import secrets
from pathlib import Path


def key_text(given: str, default: Path) -> str:
    """Return the key in the file `given`, or the one at `default`, made if missing."""
    if given:
        return Path(given).read_text().strip()
    if not default.exists():
        default.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        handle = os.open(default, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "w") as file:
            file.write(secrets.token_urlsafe(48))
    return default.read_text().strip()
