"""Small images of every type, and what only looks like one."""

import io
import struct
import zlib

from PIL import Image


def picture(kind: str = "PNG", size: tuple[int, int] = (3, 2), **options) -> bytes:
    """Return an image as a program would write it."""
    written = io.BytesIO()
    mode = options.pop("mode", "P" if kind == "GIF" else "RGB")
    Image.new(mode, size, options.pop("color", 1)).save(written, kind, **options)
    return written.getvalue()


def png_that_says(width: int, height: int) -> bytes:
    """Return a few bytes whose header declares any size."""
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        _chunk(name, body)
        for name, body in [
            (b"IHDR", header),
            (b"IDAT", zlib.compress(b"\0")),
            (b"IEND", b""),
        ]
    )


def padded(data: bytes, length: int) -> bytes:
    """Return the image with bytes behind its end, which no reader minds."""
    return data + bytes(length - len(data))


def _chunk(name: bytes, body: bytes) -> bytes:
    checked = name + body
    return (
        struct.pack(">I", len(body)) + checked + struct.pack(">I", zlib.crc32(checked))
    )
