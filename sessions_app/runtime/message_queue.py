"""Messages on their way to the model: a row until they are recorded."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from functools import partial

from sessions_app.engine.blocks import BLOCK_END, BLOCK_HEAD
from sessions_app.models import CommandSession, ProcessState, QueuedMessage, Session
from sessions_app.runtime import images
from sessions_app.runtime.approvals import Append
from traces_app.omnimessage import OmniMessage, image_url, user_text


class MessageQueue:
    """Takes what waits for the model: each row goes as its text is recorded."""

    def __init__(self, session_id: str, *, append: Append) -> None:
        self._session_id = session_id
        self._append = append

    async def take(self) -> list[OmniMessage]:
        """Record what was queued, and what ended meanwhile; the loop sends it next."""
        taken: list[OmniMessage] = []
        queued = QueuedMessage.objects.select_related("created_by").filter(
            session_id=self._session_id
        )
        for row in [row async for row in queued]:
            taken += await self._tell_ended()
            messages = await queued_messages(row)
            with contextlib.suppress(QueuedMessage.DoesNotExist):
                await self._append(*messages, also=partial(claim, row))
                taken += messages
        return taken

    async def _tell_ended(self) -> list[OmniMessage]:
        """Tell the model once which background commands ended since its last turn."""
        untold = CommandSession.objects.filter(
            session_id=self._session_id, is_background=True, exit_told=False
        ).exclude(state=ProcessState.RUNNING)
        rows = [row async for row in untold]
        if not rows:
            return []
        block = ended_block(rows)
        ids = [row.pk for row in rows]

        def store() -> None:
            CommandSession.objects.filter(pk__in=ids).update(exit_told=True)

        await self._append(block, also=store)
        return [block]


async def queued_messages(row: QueuedMessage) -> list[OmniMessage]:
    """Return a queued row as the messages a task starts with."""
    urls = row.images.values_list("url", flat=True)
    author = row.created_by.get_username() if row.created_by else None
    text = user_text(row.text, author=author)
    return [text, *[image_url(url) async for url in urls]]


def ended_block(rows: Sequence[CommandSession]) -> OmniMessage:
    """Return the product's own words on commands that are over."""
    lines = [f"{BLOCK_HEAD} These commands of yours ended since your last turn:"]
    for row in rows:
        how = f"exit code {row.exit_code}"
        if row.signal:
            how = f"terminated by signal {row.signal}"
        if row.state in (ProcessState.LOST, ProcessState.EVICTED):
            how = f"{row.state}, its end is unknown"
        lines.append(f"- {row.process_id}: {how}")
    return user_text("\n".join([*lines, BLOCK_END]), synthetic="processes")


def claim(row: QueuedMessage) -> None:
    """Take the row, or raise `DoesNotExist` when it was recalled meanwhile."""
    if not remove(row):
        raise QueuedMessage.DoesNotExist


def remove(row: QueuedMessage) -> bool:
    """Delete the row and its images; return whether it was there still."""
    _, deleted = QueuedMessage.objects.filter(pk=row.pk).delete()
    return deleted.get(QueuedMessage._meta.label, 0) > 0


def back_to_draft(session_id: str) -> None:
    """Put queued messages back into the composer's draft."""
    rows = list(QueuedMessage.objects.filter(session_id=session_id))
    if rows:
        session = Session.objects.get(pk=session_id)
        texts = [session.draft, *(row.text for row in rows)]
        session.draft = "\n\n".join(text for text in texts if text)
        session.save(update_fields=["draft"])
        images.take_back(rows)
        QueuedMessage.objects.filter(pk__in=[row.pk for row in rows]).delete()
