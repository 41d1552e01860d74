"""What counts as an image: four types, told by the bytes, within fixed limits.

The same rules hold for what a tool reads and for what a person sends. An image is
never decoded here: its header says how large it would be, and that is checked first.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

from sessions_app.environment.tool import ToolError
from traces_app.figures import size
from traces_app.omnimessage.image_data import TYPES, data_url, image_size, image_type

MAX_BYTES = 5 * 1024 * 1024
MAX_SIDE = 8000  # pixels; providers refuse more
MAX_PIXELS = 50_000_000
KINDS = "PNG, JPEG, GIF or WebP"


class ImageError(ToolError):
    """An image that cannot be taken; the text names it and says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """An image that keeps the rules."""

    name: str  # a path or an address
    mime_type: str
    width: int
    height: int
    size: int  # bytes
    sha256: str  # of the bytes
    url: str  # data:

    @classmethod
    def from_bytes(cls, data: bytes, name: str) -> Self:
        """Check the bytes; raises `ImageError`. Takes some milliseconds per MB."""
        if not data:
            raise ImageError(f"{name} is empty")
        if len(data) > MAX_BYTES:
            raise too_large(name, len(data))
        mime_type = image_type(data)
        if mime_type is None:
            raise ImageError(f"{name} is not an image that can be used: {KINDS}")
        declared = image_size(data)
        if declared is not None:
            _check_size(name, *declared)  # before any library takes it at its word
        width, height = _parsed_size(data, mime_type, name)
        _check_size(name, width, height)
        return cls(
            name=name,
            mime_type=mime_type,
            width=width,
            height=height,
            size=len(data),
            sha256=hashlib.sha256(data).hexdigest(),
            url=data_url(data, mime_type),
        )

    @property
    def summary(self) -> str:
        """Return type, measures and name in a line."""
        measures = f"{self.width} × {self.height} pixels, {size(self.size)}"
        return f"{TYPES[self.mime_type]} image, {measures}: {self.name}"

    @property
    def facts(self) -> dict[str, Any]:
        """Return what the record says of it beside the bytes, or in their place."""
        return {
            "source": self.name,
            "type": self.mime_type,
            "width": self.width,
            "height": self.height,
            "size": self.size,
            "sha256": self.sha256,
        }


def too_large(name: str, length: int | None = None) -> ImageError:
    """Return the error for too many bytes; `length` where it is known."""
    told = f" ({length:,} bytes)" if length else ""
    return ImageError(f"{name} is too large{told}: an image may have up to 5 MB")


def _check_size(name: str, width: int, height: int) -> None:
    if max(width, height) > MAX_SIDE or width * height > MAX_PIXELS:
        raise ImageError(
            f"{name} has {width} × {height} pixels; up to {MAX_SIDE} × {MAX_SIDE} and "
            f"{MAX_PIXELS // 1_000_000} megapixels can be used. Scale it down first"
        )


def _parsed_size(data: bytes, mime_type: str, name: str) -> tuple[int, int]:
    """Return the size as the library reads it from the header; nothing is decoded."""
    # Imported when the first image comes: most servers start without needing it.
    from PIL import GifImagePlugin, JpegImagePlugin, PngImagePlugin, WebPImagePlugin
    from PIL.Image import DecompressionBombError
    from PIL.ImageFile import ImageFile

    parsers: dict[str, Callable[[io.BytesIO], ImageFile]] = {
        "image/png": PngImagePlugin.PngImageFile,
        "image/jpeg": JpegImagePlugin.JpegImageFile,
        "image/gif": GifImagePlugin.GifImageFile,
        "image/webp": WebPImagePlugin.WebPImageFile,
    }
    try:
        with parsers[mime_type](io.BytesIO(data)) as parsed:
            return parsed.size
    except (
        DecompressionBombError,
        MemoryError,
        OSError,
        OverflowError,
        SyntaxError,
        ValueError,
    ) as error:
        raise ImageError(
            f"{name} begins like a {TYPES[mime_type]} but cannot be read as one: {error}"
        ) from error
