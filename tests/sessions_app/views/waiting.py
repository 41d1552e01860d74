"""Waiting for what a running session does, and the addresses of its pages."""

from __future__ import annotations

import asyncio

from asgiref.sync import sync_to_async

from sessions_app import runtime
from sessions_app.models import ApprovalRequest, Session

WAIT_S = 20


def address(session: Session, action: str = "") -> str:
    return f"/p/{session.project.slug}/s/{session.pk}/{action}"


async def cards(session: Session, count: int = 1) -> list[ApprovalRequest]:
    """Wait until so many calls of the session are pending."""
    async with asyncio.timeout(WAIT_S):
        while True:
            rows = await sync_to_async(runtime.pending_requests)(session.pk)
            if len(rows) == count:
                return rows
            await asyncio.sleep(0.01)


async def until(session: Session, status: str = "idle") -> Session:
    """Wait until the session has the status; return its row as it is then."""
    async with asyncio.timeout(WAIT_S):
        while True:
            row = await Session.objects.select_related("project").aget(pk=session.pk)
            if row.status == status:
                return row
            await asyncio.sleep(0.01)
