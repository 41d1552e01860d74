"""Messages on their way to the model: a row until they are recorded."""

from __future__ import annotations

from collections.abc import Sequence

from sessions_app.models import CommandSession, ProcessState, QueuedMessage, Session
from traces_app.omnimessage import OmniMessage, image_url, user_text


def queued_messages(row: QueuedMessage) -> list[OmniMessage]:
    """Return a queued row as the messages a task starts with."""
    return [user_text(row.text), *(image_url(image) for image in row.images)]


def ended_block(rows: Sequence[CommandSession]) -> OmniMessage:
    """Return the product's own words on commands that are over."""
    lines = ["These commands of yours ended since your last turn:"]
    for row in rows:
        how = f"exit code {row.exit_code}"
        if row.signal:
            how = f"terminated by signal {row.signal}"
        if row.state in (ProcessState.LOST, ProcessState.EVICTED):
            how = f"{row.state}, its end is unknown"
        lines.append(f"- {row.process_id}: {how}")
    return user_text("\n".join(lines), synthetic="processes")


def claim(row: QueuedMessage) -> None:
    """Take the row, or raise `DoesNotExist` when it was recalled meanwhile."""
    if not QueuedMessage.objects.filter(pk=row.pk).delete()[0]:
        raise QueuedMessage.DoesNotExist


def back_to_draft(session_id: str) -> None:
    """Put queued messages back into the composer's draft."""
    rows = list(QueuedMessage.objects.filter(session_id=session_id))
    if rows:
        session = Session.objects.get(pk=session_id)
        texts = [session.draft, *(row.text for row in rows)]
        session.draft = "\n\n".join(text for text in texts if text)
        session.save(update_fields=["draft"])
        QueuedMessage.objects.filter(pk__in=[row.pk for row in rows]).delete()
