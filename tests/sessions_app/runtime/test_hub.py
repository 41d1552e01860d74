"""Wakes: cheap, coalesced, and shared between processes by hints."""

from __future__ import annotations

import asyncio

from channels.layers import InMemoryChannelLayer

from sessions_app.runtime.hub import Hub


async def test_notify_wakes_every_watcher_of_the_topic():
    hub = Hub()

    with hub.watch("s1") as one, hub.watch("s1") as two, hub.watch("s2") as other:
        hub.notify("s1")

        assert await one.wait(1) and await two.wait(1)
        assert not await other.wait(0.01)


async def test_wakes_before_a_wait_are_not_lost_and_count_once():
    hub = Hub()

    with hub.watch("s1") as watch:
        hub.notify("s1")
        hub.notify("s1")

        assert await watch.wait(1)
        assert not await watch.wait(0.01)


async def test_output_alone_is_told_apart_from_state():
    hub = Hub()

    with hub.watch("s1") as watch:
        watch.is_state = False
        hub.notify("s1", state=False)
        assert not watch.is_state
        hub.notify("s1")
        assert watch.is_state


async def test_a_watch_ends_with_its_block():
    hub = Hub()

    with hub.watch("s1") as watch:
        pass
    hub.notify("s1")

    assert not await watch.wait(0.01)


async def test_a_notice_reaches_the_hub_of_another_process():
    layer = InMemoryChannelLayer()
    here, there = Hub(layer), Hub(layer)

    with there.watch("session-1") as watch:
        await asyncio.sleep(0.05)
        here.notify("session-1")

        assert await watch.wait(5)
    await here.aclose()
    await there.aclose()


async def test_many_notices_become_few_hints():
    layer = InMemoryChannelLayer()
    sent: list[object] = []
    send = layer.group_send

    async def counted(group, message):
        sent.append(message)
        await send(group, message)

    layer.group_send = counted
    hub = Hub(layer)

    for _ in range(500):
        hub.notify("session-1")
    await asyncio.sleep(0.2)

    assert len(sent) == 1
    await hub.aclose()
