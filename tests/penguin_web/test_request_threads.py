"""Requests borrow threads: one at a time each, kept for the next, never piled up."""

import asyncio
import contextlib
import threading

from asgiref.sync import sync_to_async

from penguin_web.request_threads import IDLE_THREADS, RequestThreads


def thread_id() -> int:
    return threading.get_ident()


async def nothing(*_) -> None:
    return None


async def test_the_next_request_gets_the_thread_of_the_last():
    seen = []

    async def application(scope, receive, send):
        seen.append(await sync_to_async(thread_id)())

    served = RequestThreads(application)

    for _ in range(3):
        await served({}, nothing, nothing)

    assert len(set(seen)) == 1


async def test_requests_at_the_same_time_have_threads_of_their_own():
    seen = []
    together = asyncio.Barrier(20)

    async def application(scope, receive, send):
        seen.append(await sync_to_async(thread_id)())
        await together.wait()

    served = RequestThreads(application)

    await asyncio.gather(*(served({}, nothing, nothing) for _ in range(20)))

    assert len(set(seen)) == 20


async def test_the_threads_of_a_rush_end_with_it():
    async def application(scope, receive, send):
        await sync_to_async(thread_id)()
        await asyncio.sleep(0.05)

    served = RequestThreads(application)
    before = threading.active_count()

    await asyncio.gather(*(served({}, nothing, nothing) for _ in range(40)))

    async with asyncio.timeout(10):
        while threading.active_count() > before + IDLE_THREADS:
            await asyncio.sleep(0.01)


async def test_a_request_that_fails_gives_its_thread_back():
    seen = []

    async def application(scope, receive, send):
        seen.append(await sync_to_async(thread_id)())
        raise ValueError("broken")

    served = RequestThreads(application)

    for _ in range(2):
        with contextlib.suppress(ValueError):
            await served({}, nothing, nothing)

    assert len(seen) == 2 and len(set(seen)) == 1
