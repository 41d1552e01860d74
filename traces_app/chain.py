"""The hash chain of a Trace: pure functions over bytes, no Django.

body_sha256(n) = SHA-256(salt(n) || exact body bytes)
header(n)      = canonical JSON {v, trace, seq, timestamp, type, body_sha256}
hash(n)        = SHA-256(hash(n-1) || header(n)),   hash(0) = 32 zero bytes
"""

from __future__ import annotations

import hashlib
import json
import os
from json.encoder import encode_basestring as quoted
from typing import Any

VERSION = 1
START = bytes(32)  # hash(0)


def canonical(value: Any) -> str:
    """Return canonical JSON: sorted keys, no spaces, no ASCII escaping."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def new_salt() -> bytes:
    """Return 16 random bytes, so that the digest of an erased body tells nothing."""
    return os.urandom(16)


def body_digest(salt: bytes, body: bytes) -> bytes:
    """Return the salted digest that stands for a body in the chain."""
    return hashlib.sha256(salt + body).digest()


def header(trace: str, seq: int, timestamp: str, type_: str, digest: bytes) -> str:
    """Return the canonical JSON of one link, written out because it is hot."""
    return (
        f'{{"body_sha256":"{digest.hex()}","seq":{seq},'
        f'"timestamp":{quoted(timestamp)},"trace":{quoted(trace)},'
        f'"type":{quoted(type_)},"v":{VERSION}}}'
    )


def link(previous: bytes, header_text: str) -> bytes:
    """Return the hash of a link over the hash before it."""
    return hashlib.sha256(previous + header_text.encode()).digest()


def text_digest(text: str) -> bytes:
    """Return the plain SHA-256 of a text."""
    return hashlib.sha256(text.encode()).digest()


def parse(text: str) -> Any:
    """Parse what `canonical` wrote."""
    return json.loads(text)
