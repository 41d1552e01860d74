"""Images in a conversation: shown only when their bytes stand in the message."""

from __future__ import annotations

import re
from dataclasses import dataclass

_SHOWN = re.compile(r"data:image/(?:png|jpeg|gif|webp);base64,[A-Za-z0-9+/=\s]+")
LONGEST_ADDRESS = 200  # characters shown of an address that is not loaded


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """An image to show (`source`), or words about one that is not loaded."""

    source: str = ""
    words: str = ""


def picture(address: str) -> Picture:
    """Return the image, never a reference that a browser would follow."""
    if _SHOWN.fullmatch(address):
        return Picture(source=address)
    shown = address.split(",", 1)[0] if address.startswith("data:") else address
    if len(shown) > LONGEST_ADDRESS:
        shown = shown[:LONGEST_ADDRESS] + "…"
    return Picture(words=f"image, not loaded: {shown}")
