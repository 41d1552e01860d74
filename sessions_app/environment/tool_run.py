"""Runs one tool call to its end: drives the tool, watches the clock and the signal.

1. A task of its own drives the tool's generator; what it yields becomes frames.
2. An interrupt or the timeout fires the tool's signal; a tool that does not end by
   itself is cut off a second later, and nothing it does afterwards counts.
3. Nothing a tool raises leaves the driving task: `SystemExit` would end the loop.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncGenerator
from typing import Any

from sessions_app.environment.call_log import CallLog
from sessions_app.environment.close_out import (
    INTERRUPTED,
    CloseOut,
    Verdict,
    error_marker,
    is_passed_through,
    self_reported,
    timeout_marker,
)
from sessions_app.environment.tool import (
    AbortSignal,
    Tool,
    ToolContext,
    ToolError,
)
from traces_app.omnimessage import OmniMessage, StopReason

logger = logging.getLogger(__name__)

GRACE_S = 1.0  # between the tool's signal and the cut
# Tools that did not end when they were cancelled: kept until they do.
_left_behind: set[asyncio.Task[None]] = set()


class ToolRun:
    """One execution of a tool."""

    def __init__(
        self,
        tool: Tool,
        args: dict[str, Any],
        *,
        ctx: ToolContext,
        close_out: CloseOut,
        log: CallLog | None,
        interrupt: AbortSignal,
        timeout_ms: int,
    ) -> None:
        self._tool = tool
        self._args = args
        self._ctx = ctx
        self._close_out = close_out
        self._log = log
        self._interrupt = interrupt
        self._timeout_ms = timeout_ms
        self._is_timed_out = False
        self._error: str | None = None
        self._frames: deque[OmniMessage] = deque()
        self._news = asyncio.Event()
        self._timers: list[asyncio.TimerHandle] = []
        self._has_ended = False

    async def frames(self) -> AsyncGenerator[OmniMessage, None]:
        """Yield frames as the tool produces; ends when it has ended or was cut off."""
        loop = asyncio.get_running_loop()
        driver = loop.create_task(self._drive(), name=f"tool {self._tool.name}")
        if self._timeout_ms > 0:
            timer = loop.call_later(self._timeout_ms / 1000, self._time_out)
            self._timers.append(timer)
        self._interrupt.add_callback(self._be_interrupted)
        try:
            while True:
                while self._frames:
                    yield self._frames.popleft()
                if self._has_ended:
                    return
                self._news.clear()
                await self._news.wait()
        finally:
            self._end()
            self._interrupt.remove_callback(self._be_interrupted)
            for timer in self._timers:
                timer.cancel()
            await _dismiss(driver)

    async def verdict(self) -> Verdict:
        """Say how the call ended, and bring the file up to date that a marker names."""
        stop_reason, ending = self._outcome()
        artifact = None
        if self._close_out.needs_artifact and self._ctx.artifact is not None:
            artifact = await self._ctx.artifact()
        return Verdict(stop_reason=stop_reason, ending=ending, artifact=artifact)

    def _outcome(self) -> tuple[StopReason, str | None]:
        """Return stop reason and closing marker; the higher one where two came."""
        if self._interrupt.aborted:
            return StopReason.ABORTED, INTERRUPTED
        if self._is_timed_out:
            return StopReason.TIMEOUT, timeout_marker(self._timeout_ms)
        if self._error is not None:
            return StopReason.FAILED, error_marker(self._error)
        return self_reported(self._close_out.result), None

    def _time_out(self) -> None:
        self._is_timed_out = True
        self._stop("timeout")

    def _be_interrupted(self) -> None:
        self._stop(self._interrupt.reason or "interrupt")

    def _stop(self, reason: str) -> None:
        self._ctx.signal.abort(reason)
        loop = asyncio.get_running_loop()
        self._timers.append(loop.call_later(GRACE_S, self._end))

    def _end(self) -> None:
        self._has_ended = True
        self._news.set()

    async def _drive(self) -> None:
        try:
            await self._consume()
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if self._has_ended or (task is not None and task.cancelling()):
                raise  # asked for from outside, not the tool's doing
            self._error = "something the tool waited for was cancelled"
        except BaseException as error:
            if not isinstance(error, ToolError):
                logger.warning("tool %s raised", self._tool.name, exc_info=True)
            self._error = _words_of(error)
        finally:
            self._end()

    async def _consume(self) -> None:
        items = self._tool.execute(self._args, self._ctx)
        try:
            async for item in items:
                if self._has_ended:
                    return
                self._take(item)
                if self._log is not None:
                    await self._log.drain()
        finally:
            close = getattr(items, "aclose", None)
            if close is not None:
                await close()

    def _take(self, item: object) -> None:
        if isinstance(item, OmniMessage) and is_passed_through(item):
            self._frames.append(item)
            self._news.set()
            return
        text = self._close_out.text_of(item)
        if not text:
            return
        if self._log is not None:
            self._log.write(text)
        frame = self._close_out.delta(text)
        if frame is not None:
            self._frames.append(frame)
            self._news.set()


def _words_of(error: BaseException) -> str:
    try:
        return str(error) or type(error).__name__
    except Exception:
        return type(error).__name__  # an exception that cannot even be shown


async def _dismiss(driver: asyncio.Task[None]) -> None:
    """Cancel what is left of the driver and give its cleanup a moment."""
    if driver.done():
        _forget(driver)
        return
    _left_behind.add(driver)
    driver.add_done_callback(_forget)
    driver.cancel()
    await asyncio.wait({driver}, timeout=0.05)


def _forget(driver: asyncio.Task[None]) -> None:
    """Take note of how the driver ended, so that nobody reports it as unseen."""
    _left_behind.discard(driver)
    if not driver.cancelled():
        driver.exception()
