"""What stories with images ask of sessions and of scripted providers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sessions_app import runtime
from sessions_app.models import AttachedImage
from tests.fakes import Request

WIRES = ("openai", "anthropic")


async def place(chat, name: str, data: bytes) -> None:
    """Put a file into the session's workspace."""
    (Path((await chat.row()).workspace) / name).write_bytes(data)


async def images_sent(chat) -> list[str]:
    return [payload.image_url for payload in await chat.events("image_url")]


def shown_images(request: Request) -> list[str]:
    """Return what a request shows the model, as data: URLs."""
    found = []
    for part in _parts(request.body["messages"]):
        if part.get("type") == "image_url":
            found.append(part["image_url"]["url"])
        if part.get("type") == "image":
            source = part["source"]
            found.append(f"data:{source['media_type']};base64,{source['data']}")
    return found


def _parts(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
    for inner in value.values() if isinstance(value, dict) else value:
        if isinstance(inner, dict | list):
            yield from _parts(inner)


async def in_composer(chat) -> list[AttachedImage]:
    session = await chat.row()
    return [image async for image in runtime.in_composer(session)]
