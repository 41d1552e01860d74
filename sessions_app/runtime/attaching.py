"""What people do to the images in a session's composer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from asgiref.sync import sync_to_async

from sessions_app.models import Session
from sessions_app.runtime import images, supervisor
from sessions_app.runtime.images import Upload


async def attach_images(
    session: Session, uploads: Sequence[Upload], *, user: Any = None
) -> None:
    """Put images into the composer, all or none; raises `Refusal` naming the reason."""
    await sync_to_async(images.attach)(session, uploads, user)
    supervisor.current().hub.notify(session.pk)


async def detach_image(session: Session, image_id: int, *, user: Any = None) -> None:
    """Throw an image of the composer away; one that is gone already is no fault."""
    await sync_to_async(images.detach)(session, image_id)
    supervisor.current().hub.notify(session.pk)
