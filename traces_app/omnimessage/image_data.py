"""Images as messages carry them: data: URLs of four types, told by their bytes."""

from __future__ import annotations

import base64
import binascii
import re
import struct
from collections.abc import Callable

# The types every provider takes, as people name them.
TYPES = {
    "image/png": "PNG",
    "image/jpeg": "JPEG",
    "image/gif": "GIF",
    "image/webp": "WebP",
}
_DATA_URL = re.compile(r"data:[\w.+/-]*(?:;[\w.+=-]+)*;base64,", re.IGNORECASE)
_SIGNATURES = (
    ("image/png", re.compile(rb"\x89PNG\r\n\x1a\n")),
    ("image/jpeg", re.compile(rb"\xff\xd8\xff")),
    ("image/gif", re.compile(rb"GIF8[79]a")),
    ("image/webp", re.compile(rb"RIFF.{4}WEBP", re.DOTALL)),
)
_JPEG_SIZES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_JPEG_BARE = frozenset({0x01, *range(0xD0, 0xDA)})  # markers without a length


def image_type(data: bytes) -> str | None:
    """Return the type whose signature the bytes begin with, None for any other."""
    return next((name for name, sign in _SIGNATURES if sign.match(data)), None)


def image_size(data: bytes) -> tuple[int, int] | None:
    """Return width and height as the first bytes declare them, None if they do not."""
    found = image_type(data)
    try:
        return _SIZES[found](data) if found else None
    except (struct.error, IndexError):
        return None


def data_url(data: bytes, mime_type: str) -> str:
    """Return the bytes as a data: URL."""
    return f"data:{mime_type};base64,{base64.b64encode(data).decode('ascii')}"


def bytes_of(url: str) -> bytes | None:
    """Return the bytes of a base64 data: URL, None for anything else.

    What the URL says about their type is nobody's business: `image_type` tells.
    """
    head = _DATA_URL.match(url)
    if head is None:
        return None
    try:
        return base64.b64decode(url[head.end() :], validate=True)
    except (binascii.Error, ValueError):
        return None


def head_of(url: str, length: int = 48 * 1024) -> bytes:
    """Return the first bytes of a base64 data: URL, which may be cut anywhere."""
    head = _DATA_URL.match(url)
    if head is None:
        return b""
    text = url[head.end() : head.end() + (length // 3) * 4]
    try:
        return base64.b64decode(text[: len(text) // 4 * 4], validate=True)
    except (binascii.Error, ValueError):
        return b""


def _png(data: bytes) -> tuple[int, int]:
    width, height = struct.unpack_from(">II", data, 16)
    return width, height


def _gif(data: bytes) -> tuple[int, int]:
    width, height = struct.unpack_from("<HH", data, 6)
    return width, height


def _jpeg(data: bytes) -> tuple[int, int] | None:
    at = 2
    while data[at] == 0xFF:
        marker = data[at + 1]
        if marker in _JPEG_SIZES:
            height, width = struct.unpack_from(">HH", data, at + 5)
            return width, height
        if marker == 0xFF:
            at += 1  # padding
        elif marker in _JPEG_BARE:
            at += 2
        else:
            at += 2 + struct.unpack_from(">H", data, at + 2)[0]
    return None


def _webp(data: bytes) -> tuple[int, int] | None:
    match data[12:16]:
        case b"VP8X":
            low, high = struct.unpack_from("<IH", data, 24)
            return (low & 0xFFFFFF) + 1, ((low >> 24) | (high << 8)) + 1
        case b"VP8L":
            (bits,) = struct.unpack_from("<I", data, 21)
            return (bits & 0x3FFF) + 1, ((bits >> 14) & 0x3FFF) + 1
        case b"VP8 ":
            width, height = struct.unpack_from("<HH", data, 26)
            return width & 0x3FFF, height & 0x3FFF
    return None


_SIZES: dict[str, Callable[[bytes], tuple[int, int] | None]] = {
    "image/png": _png,
    "image/jpeg": _jpeg,
    "image/gif": _gif,
    "image/webp": _webp,
}
