"""Images people send: checked like those of tools, kept as data: URLs.

A program gives them with its message, as data: URLs or addresses to fetch. A person
attaches them first: they wait in the composer, as rows, until a message takes them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from asgiref.sync import sync_to_async
from django.db import transaction
from django.db.models import QuerySet

from sessions_app.config.documents import DocumentError
from sessions_app.environment import AbortSignal, ToolError
from sessions_app.environment.image_source import ImageSource
from sessions_app.environment.images import MAX_BYTES, Image, ImageError, too_large
from sessions_app.environment.web_address import WebAddress
from sessions_app.models import AttachedImage, QueuedMessage, Session
from sessions_app.runtime import configs
from sessions_app.runtime.refusal import Refusal, invalid
from traces_app.omnimessage.image_data import bytes_of

MAX_IMAGES = 20  # of one message
MAX_TOTAL = 20 * 1024 * 1024  # bytes of one message's images; providers take no more
FETCH_S = 30.0
# What a page tells of them before anything is sent.
IMAGE_LIMITS = {"count": MAX_IMAGES, "bytes": MAX_BYTES, "total": MAX_TOTAL}


@dataclass(frozen=True, slots=True, kw_only=True)
class Upload:
    """A file as a browser sends it."""

    name: str
    data: bytes


def sees_images(session: Session) -> bool:
    """Return whether the session's model can look at images. Synchronous."""
    try:
        config = configs.current(session.project)[0]
    except DocumentError:
        return False
    entry = config.model(f"{session.provider}/{session.model_id}")
    return entry is not None and entry.vision


def check_sight(session: Session) -> None:
    """Refuse images for a model that cannot see them, and name those that can."""
    if sees_images(session):
        return
    config = configs.current(session.project)[0]
    able = ", ".join(entry.name for entry in config.models if entry.vision)
    raise invalid(
        "images",
        f"The model {session.provider}/{session.model_id} cannot see images. Send the "
        f"text alone, or start a session with a model that can: {able}.",
    )


async def load_images(session_id: str, images: Sequence[str]) -> list[Image]:
    """Load the images a program sends; `Refusal` names the first that cannot be."""
    if not images:
        return []
    sessions = Session.objects.select_related("project")
    session = await sessions.aget(pk=session_id)
    _check_count(len(images))
    await sync_to_async(check_sight)(session)
    config, _ = await sync_to_async(configs.current)(session.project)
    found: list[Image] = []
    for number, source in enumerate(images, start=1):
        try:
            image = await _image(source, number, config.allowed_image_hosts)
        except ToolError as error:
            raise _refused(error) from error
        found.append(image)
        _check_total(sum(image.size for image in found))
    return found


async def _image(source: str, number: int, hosts: Collection[str]) -> Image:
    name = f"Image {number}"
    if source[:5].lower() == "data:":
        data = await asyncio.to_thread(bytes_of, source)
        if data is None:
            raise ImageError(f"{name} is no data: URL with base64")
        return await asyncio.to_thread(Image.from_bytes, data, name)
    if WebAddress.of(source) is None:
        raise ImageError(f"{name} is neither a data: nor an http(s) URL")
    try:
        async with asyncio.timeout(FETCH_S):
            return await ImageSource(Path("/"), hosts).load(source, AbortSignal())
    except TimeoutError as error:
        raise ImageError(f"{name} did not come within {FETCH_S:g} s") from error


def attach(session: Session, uploads: Sequence[Upload], user: Any) -> None:
    """Put images into the composer, all of them or none. Synchronous."""
    check_sight(session)
    found = []
    for upload in uploads:
        try:
            found.append(Image.from_bytes(upload.data, upload.name or "The image"))
        except ImageError as error:
            raise _refused(error) from error
    with transaction.atomic():
        # One at a time per session: the limits hold for all of them together.
        Session.objects.select_for_update().get(pk=session.pk)
        _keep(found, session=session, user=user)
        _check_limits(in_composer(session))


def check_upload(name: str, size: int) -> None:
    """Refuse a file for its size alone, before it is read."""
    if size > MAX_BYTES:
        raise _refused(too_large(name, size))


def in_composer(session: Session) -> QuerySet[AttachedImage]:
    """Return the images that wait for a message to take them, without their bytes."""
    rows = AttachedImage.objects.filter(session=session, message=None)
    return rows.defer("url")


def detach(session: Session, image_id: int) -> None:
    """Throw an image of the composer away."""
    in_composer(session).filter(pk=image_id).delete()


def give(
    message: QueuedMessage, *, images: Sequence[Image], attached: Collection[int]
) -> int:
    """Give a new message its images; return how many it has.

    Those of the composer that are gone already are left out. Belongs into the
    transaction that makes the message.
    """
    session = message.session
    in_composer(session).filter(pk__in=attached).update(message=message)
    _keep(images, session=session, user=message.created_by, message=message)
    rows = AttachedImage.objects.filter(message=message)
    return _check_limits(rows)


def take_back(messages: Sequence[QueuedMessage]) -> None:
    """Put the images of messages that will not be delivered back into the composer."""
    AttachedImage.objects.filter(message__in=messages).update(message=None)


def _keep(
    images: Sequence[Image],
    *,
    session: Session,
    user: Any,
    message: QueuedMessage | None = None,
) -> None:
    AttachedImage.objects.bulk_create(
        AttachedImage(
            session=session,
            message=message,
            name=image.name[:200],
            url=image.url,
            width=image.width,
            height=image.height,
            size=image.size,
            created_by=user,
        )
        for image in images
    )


def _check_limits(rows: QuerySet[AttachedImage]) -> int:
    sizes = list(rows.values_list("size", flat=True))
    _check_count(len(sizes))
    _check_total(sum(sizes))
    return len(sizes)


def _check_count(count: int) -> None:
    if count > MAX_IMAGES:
        words = f"{count} images; a message may have up to {MAX_IMAGES}."
        raise invalid("images", words)


def _check_total(total: int) -> None:
    if total > MAX_TOTAL:
        raise invalid(
            "images",
            f"The images have {total / 2**20:.1f} MB together; a message may have up "
            f"to {MAX_TOTAL // 2**20} MB of them.",
        )


def _refused(error: ToolError) -> Refusal:
    words = str(error)
    return invalid("images", f"{words[0].upper()}{words[1:].rstrip('.')}.")
