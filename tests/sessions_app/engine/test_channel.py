"""The queue: order, room for a slow reader, an end that lets everybody go."""

from __future__ import annotations

import asyncio

from sessions_app.engine.channel import ROOM, Channel


async def test_items_come_in_order_and_then_the_end():
    channel: Channel[int] = Channel()
    channel.put(1)
    await channel.offer(2)
    channel.close()
    channel.put(3)

    assert [await channel.get(), await channel.get(), await channel.get()] == [
        1,
        2,
        None,
    ]


async def test_offer_waits_for_a_slow_reader_and_put_does_not():
    channel: Channel[int] = Channel()
    for number in range(ROOM):
        await channel.offer(number)
    waiting = asyncio.create_task(channel.offer(-1))
    await asyncio.sleep(0)
    channel.put(-2)

    assert not waiting.done()
    for _ in range(2):
        await channel.get()
    await asyncio.sleep(0)
    assert waiting.done()


async def test_close_lets_waiting_writers_go():
    channel: Channel[int] = Channel()
    for number in range(ROOM):
        channel.put(number)
    waiting = asyncio.create_task(channel.offer(-1))
    await asyncio.sleep(0)

    channel.close(drop=True)
    await waiting

    assert await channel.get() is None


async def test_reader_waits_for_the_first_item():
    channel: Channel[int] = Channel()
    reading = asyncio.create_task(channel.get())
    await asyncio.sleep(0)
    channel.put(7)

    assert await reading == 7
