"""When a failed request is tried again, and the wait until then."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable

from sessions_app.engine.options import LoopOptions
from sessions_app.engine.stopping import cancel, on_abort
from sessions_app.environment.tool import AbortSignal
from sessions_app.llm.client import LLMError

Sleep = Callable[[float], Awaitable[object]]


class Ladder:
    """Waits that double up to a limit; each can be skipped or stopped."""

    def __init__(
        self,
        options: LoopOptions,
        *,
        clock: Callable[[], float],
        sleep: Sleep,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._options = options
        self._clock = clock
        self._sleep = sleep
        self._jitter = jitter
        self._skipped = asyncio.Event()
        self._until: float | None = None

    def begin_wait(self, attempt: int, error: LLMError | None) -> float | None:
        """Return the seconds until the next attempt, None when there is none.

        The wait counts from now. Jitter only shortens it, so waits keep growing and
        many sessions that failed together do not come back together.
        """
        self._until = None
        if error is None or not error.is_retryable or attempt > self._options.retries:
            return None
        full_s = self._options.first_wait_s * float(2 ** (attempt - 1))
        wait_s = min(full_s, self._options.max_wait_s) * (1 - self._jitter() / 4)
        self._until = self._clock() + wait_s
        self._skipped.clear()
        return wait_s

    @property
    def is_waiting(self) -> bool:
        """Whether another attempt is due after a wait that has begun."""
        return self._until is not None

    def skip(self) -> None:
        """End the present wait; without one nothing happens."""
        self._skipped.set()

    async def pause(self, stop: AbortSignal) -> None:
        """Wait for what is left; returns at once when skipped or stopped."""
        left_s = 0 if self._until is None else self._until - self._clock()
        self._until = None
        if left_s <= 0 or self._skipped.is_set():
            return
        sleeping = asyncio.ensure_future(self._sleep(left_s))
        skipping = asyncio.create_task(self._skipped.wait())
        with on_abort(stop, self._skipped.set):
            await asyncio.wait(
                {sleeping, skipping}, return_when=asyncio.FIRST_COMPLETED
            )
        skipping.cancel()
        await cancel(sleeping)


def describe(error: BaseException) -> str:
    """Return the error's words with those of its causes that they do not contain."""
    words = str(error) or type(error).__name__
    cause = _cause(error)
    seen = {id(error)}
    while cause is not None and id(cause) not in seen:
        seen.add(id(cause))
        more = str(cause) or type(cause).__name__
        if more not in words:
            words = f"{words}: {more}"
        cause = _cause(cause)
    return words


def _cause(error: BaseException) -> BaseException | None:
    if error.__cause__ is not None or error.__suppress_context__:
        return error.__cause__
    return error.__context__
