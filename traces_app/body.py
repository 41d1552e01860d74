"""How a body is laid out in rows: short text in place, long runs once in blobs."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

IN_PLACE_BYTES = 32 * 1024  # a piece beyond this lives in a blob
# Base64 of an image or file. The look-behind tries each run once: linear time.
_ENCODED = re.compile(r"(?<![A-Za-z0-9+/=])[A-Za-z0-9+/=]{1024,}")


@dataclass(frozen=True, slots=True)
class Part:
    """A run of the body that lives in a blob."""

    offset: int  # characters of the text that stand before it
    sha256: str
    text: str


def split(body: str, size: int) -> tuple[str, list[Part]]:
    """Return the text that stays in place and the parts that do not."""
    if size <= 1024 or (size <= IN_PLACE_BYTES and "base64" not in body):
        return body, []
    kept: list[str] = []
    parts: list[Part] = []
    length = 0
    for piece, is_encoded in _pieces(body):
        if is_encoded or len(piece.encode()) > IN_PLACE_BYTES:
            digest = hashlib.sha256(piece.encode()).hexdigest()
            parts.append(Part(length, digest, piece))
        else:
            kept.append(piece)
            length += len(piece)
    return "".join(kept), parts


def join(text: str, parts: Sequence[tuple[int, str]]) -> str:
    """Put the parts, (offset, text) in order, back where they were."""
    if not parts:
        return text
    pieces: list[str] = []
    start = 0
    for offset, part in parts:
        pieces += text[start:offset], part
        start = offset
    pieces.append(text[start:])
    return "".join(pieces)


def _pieces(body: str) -> Iterable[tuple[str, bool]]:
    start = 0
    for match in _ENCODED.finditer(body):
        yield body[start : match.start()], False
        yield match.group(), True
        start = match.end()
    yield body[start:], False
