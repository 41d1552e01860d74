"""Images people send with their messages, and those that wait in the composer."""

from __future__ import annotations

import pytest

from sessions_app import runtime
from sessions_app.models import AttachedImage, QueuedMessage
from sessions_app.runtime.images import MAX_IMAGES
from tests.fakes import Answer, Say
from tests.pictures import padded, picture, png_that_says
from tests.sessions_app.runtime.image_stories import (
    WIRES,
    images_sent,
    in_composer,
    shown_images,
)
from traces_app.omnimessage.image_data import data_url

pytestmark = pytest.mark.django_db(transaction=True)

PNG = picture("PNG", (37, 21))
URL = data_url(PNG, "image/png")


async def refused(coroutine) -> runtime.Refusal:
    with pytest.raises(runtime.Refusal) as caught:
        await coroutine
    assert caught.value.status == 422
    return caught.value


@pytest.mark.parametrize("wire", WIRES)
async def test_image_of_a_message_reaches_the_model(make_chat, offer, server, wire):
    await offer()
    server.add(Answer(Say("Red.")))
    chat = await make_chat(model=f"lab-{wire}/eyes")

    await chat.send("Which colour?", images=[URL])
    await chat.idle()

    assert shown_images(server.requests[0]) == [URL]
    assert "Which colour?" in str(server.requests[0].body["messages"])
    assert await images_sent(chat) == [URL]


async def test_image_without_words_is_a_message_too(make_chat, offer, server):
    await offer()
    server.add(Answer(Say("Red.")))
    chat = await make_chat(model="lab-openai/eyes")

    await chat.send("", images=[URL])
    await chat.idle()

    assert shown_images(server.requests[0]) == [URL]


async def test_type_of_an_image_is_that_of_its_bytes(make_chat):
    chat = await make_chat()

    await chat.send("look", images=[f"DATA:text/html;base64,{URL.partition(',')[2]}"])
    await chat.idle()

    assert await images_sent(chat) == [URL]


async def test_image_may_be_fetched_from_a_host_the_project_allows(
    make_chat, offer, web
):
    await offer(images={"allowed_hosts": ["127.0.0.1"]})
    chat = await make_chat()

    await chat.send("look", images=[web.serve("/a.png", PNG)])
    await chat.idle()

    assert await images_sent(chat) == [URL]


@pytest.mark.parametrize(
    ("image", "words"),
    [
        ("data:image/png;base64,????", "Image 1 is no data: URL"),
        ("data:image/png,plain", "Image 1 is no data: URL"),
        ("data:image/png;base64,", "Image 1 is empty"),
        ("data:image/png;base64,aGVsbG8=", "PNG, JPEG, GIF or WebP"),
        (data_url(padded(PNG, 5 * 2**20 + 1), "image/png"), "up to 5 MB"),
        (data_url(png_that_says(9600, 7700), "image/png"), "9600 × 7700 pixels"),
        ("a.png", "neither a data: nor an http(s) URL"),
        ("/etc/passwd", "neither a data: nor an http(s) URL"),
        ("file:///etc/passwd", "File: addresses cannot be read"),
        ("http://127.0.0.1/a.png", "loopback address"),
        ("http://169.254.169.254/latest/", "metadata address"),
    ],
)
async def test_unfit_image_is_refused_with_the_reason(make_chat, image, words):
    chat = await make_chat()

    refusal = await refused(chat.send("look", images=[image]))

    assert words in refusal.message
    assert refusal.details == {"field": "images"}
    assert await chat.status() == "idle"
    assert not await QueuedMessage.objects.aexists()


async def test_too_many_images_are_refused_with_the_limit(make_chat):
    chat = await make_chat()

    refusal = await refused(chat.send("look", images=[URL] * (MAX_IMAGES + 1)))

    assert "21 images; a message may have up to 20" in refusal.message


async def test_too_many_bytes_are_refused_with_the_limit(make_chat):
    chat = await make_chat()
    large = data_url(padded(PNG, 5 * 2**20), "image/png")

    refusal = await refused(chat.send("look", images=[large] * 5))

    assert "25.0 MB together; a message may have up to 20 MB" in refusal.message


async def test_model_that_cannot_see_is_named_and_so_are_those_that_can(make_chat):
    chat = await make_chat(model="demo/demo-text")

    refusal = await refused(chat.send("look", images=[URL]))

    assert "demo/demo-text cannot see images" in refusal.message
    assert "demo/demo." in refusal.message


async def test_recalled_message_brings_its_images_back_into_the_composer(make_chat):
    chat = await make_chat("allow-all")
    await chat.send("$ sleep 5")
    await chat.until(lambda: chat.events("tool_started"))
    await chat.send("look", images=[URL], queue=True)
    queued = await QueuedMessage.objects.aget()

    text = await runtime.recall_queued(chat.id, queued.pk, user=chat.user)

    assert text == "look"
    (image,) = await in_composer(chat)
    assert (image.width, image.height, image.size) == (37, 21, len(PNG))
    await runtime.interrupt(chat.id, user=chat.user)
    await chat.idle()


async def test_stop_brings_queued_images_back_into_the_composer(make_chat):
    chat = await make_chat("allow-all")
    await chat.send("$ sleep 5")
    await chat.until(lambda: chat.events("tool_started"))
    await chat.send("look", images=[URL], queue=True)

    await runtime.interrupt(chat.id, user=chat.user)
    await chat.idle()

    assert len(await in_composer(chat)) == 1
    assert (await chat.row()).draft == "look"


async def attach(chat, *uploads: bytes) -> list[AttachedImage]:
    files = [runtime.Upload(name=f"{n}.png", data=d) for n, d in enumerate(uploads)]
    session = await chat.row()
    session = await type(session).objects.select_related("project").aget(pk=chat.id)
    await runtime.attach_images(session, files, user=chat.user)
    return await in_composer(chat)


async def test_attached_image_goes_with_the_message_that_names_it(make_chat):
    chat = await make_chat()
    one, two = await attach(chat, PNG, picture("GIF"))

    await chat.send("look", attached=[two.pk])
    await chat.idle()

    assert await images_sent(chat) == [data_url(picture("GIF"), "image/gif")]
    assert [image.pk for image in await in_composer(chat)] == [one.pk]


async def test_image_of_another_session_cannot_be_taken(make_chat):
    chat, other = await make_chat(), await make_chat()
    (image,) = await attach(other, PNG)

    await refused(chat.send("", attached=[image.pk]))

    assert len(await in_composer(other)) == 1


async def test_unfit_file_is_not_attached_and_neither_are_its_neighbours(make_chat):
    chat = await make_chat()

    refusal = await refused(attach(chat, PNG, b"hello"))

    assert "1.png is not an image" in refusal.message
    assert await in_composer(chat) == []


async def test_limits_hold_for_all_attached_images_together(make_chat):
    chat = await make_chat()
    await attach(chat, *[PNG] * MAX_IMAGES)

    refusal = await refused(attach(chat, PNG))

    assert "21 images" in refusal.message
    assert len(await in_composer(chat)) == MAX_IMAGES
