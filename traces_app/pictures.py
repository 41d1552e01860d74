"""Images in a conversation: shown by an address of ours, never by their bytes.

A page names the event and the place of the image in it; the browser asks for the
image when it comes into view.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from traces_app.omnimessage import payloads as p
from traces_app.omnimessage.image_data import (
    TYPES,
    bytes_of,
    head_of,
    image_size,
    image_type,
)

LONGEST_ADDRESS = 200  # characters shown of an address that is not loaded
KEPT = 64  # characters shown of an image's text


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """An image to show, or words about one that is not loaded."""

    number: int  # its place among the images of its event
    label: str = ""  # "PNG, 640 × 480"; empty: there is nothing to show
    width: int | None = None  # as far as its first bytes tell
    height: int | None = None
    words: str = ""


def picture(address: str, number: int = 0) -> Picture:
    """Return the image, never a reference that a browser would follow."""
    head = head_of(address)
    kind = image_type(head)
    if kind is None:
        return Picture(number=number, words=f"image, not loaded: {_shown(address)}")
    width, height = image_size(head) or (None, None)
    label = f"{TYPES[kind]}, {width} × {height}" if width else TYPES[kind]
    return Picture(number=number, label=label, width=width, height=height)


def pictures_of(payload: p.Payload) -> tuple[Picture, ...]:
    """Return the images an event holds."""
    return tuple(picture(url, n) for n, url in enumerate(addresses_of(payload)))


def addresses_of(payload: p.Payload) -> Sequence[str]:
    """Return the addresses of an event's images, in order."""
    match payload:
        case p.ToolCallOutput(images=images):
            return images
        case p.ImageUrl(image_url=address):
            return (address,)
        case p.InlineData(data=data, mime_type=mime_type):
            return (f"data:{mime_type};base64,{data}",)
    return ()


def image_of(payload: p.Payload, number: int) -> tuple[bytes, str] | None:
    """Return bytes and type of an image, None for what is not one of the four types.

    The type is that of the bytes, whatever the message says of it.
    """
    addresses = addresses_of(payload)
    data = bytes_of(addresses[number]) if number < len(addresses) else None
    kind = image_type(data) if data else None
    return (data, kind) if data and kind else None


def _shown(address: str) -> str:
    shown = address.split(",", 1)[0] if address[:5].lower() == "data:" else address
    if len(shown) > LONGEST_ADDRESS:
        shown = shown[:LONGEST_ADDRESS] + "…"
    return shown


def without_bytes(envelope: dict[str, Any]) -> dict[str, Any]:
    """Return an envelope as JSON shows it to people: images by their first letters."""
    payload = envelope.get("payload")
    if not isinstance(payload, dict):
        return envelope
    spared = {
        key: _spared(value) if key in ("image_url", "images", "data") else value
        for key, value in payload.items()
    }
    return {**envelope, "payload": spared}


def _spared(value: Any) -> Any:
    if isinstance(value, list):
        return [_spared(item) for item in value]
    if not isinstance(value, str) or len(value) <= LONGEST_ADDRESS:
        return value
    left_out = f"{len(value) - KEPT:,} characters are not shown here"
    return f"{value[:KEPT]}… {left_out}"
