"""The digest a decision is bound to: what exactly would run, and where."""

from __future__ import annotations

import hashlib
import json

from traces_app.omnimessage.codec import CodecError, parse


def arguments_sha256(name: str, workdir: str | None, arguments: str) -> str:
    """Return the hex SHA-256 of `[tool, workdir, arguments]` as canonical JSON.

    `arguments` counts as the parsed value, so spacing and key order do not matter;
    text that is no valid JSON (duplicate keys included) counts as it stands.
    """
    try:
        canonical = _canonical([name, workdir, parse(arguments)])
    except (CodecError, ValueError, RecursionError):
        canonical = _canonical([name, workdir, arguments])
    # An escape may hold half a surrogate pair; the digest must exist all the same.
    return hashlib.sha256(canonical.encode("utf-8", "surrogatepass")).hexdigest()


def _canonical(value: list[object]) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
