"""Images in the composer: put in by a form, looked at, thrown away, sent along."""

from __future__ import annotations

import re

import pytest
from asgiref.sync import sync_to_async
from django.core.files.uploadedfile import SimpleUploadedFile

from sessions_app import fragments, runtime
from sessions_app.models import AttachedImage, QueuedMessage, Session
from tests.pictures import padded, picture
from tests.sessions_app.views.waiting import address, until
from traces_app import reader

pytestmark = pytest.mark.django_db(transaction=True)

PNG = picture("PNG", (37, 21))
HTMX = {"HX-Request": "true"}


def file(data: bytes = PNG, name: str = "a.png") -> SimpleUploadedFile:
    return SimpleUploadedFile(name, data, content_type="image/png")


async def attach(client, session, *files, **more):
    return await client.post(
        address(session, "attach/"), {"images": list(files)}, **more
    )


async def attached(session) -> list[AttachedImage]:
    return [image async for image in runtime.in_composer(session)]


async def page(client, session) -> str:
    return (await client.get(address(session))).content.decode()


async def test_image_comes_into_the_composer_by_a_plain_form(client, session):
    response = await attach(client, session, file())

    assert response.status_code == 303
    assert response["Location"] == address(session)
    (image,) = await attached(session)
    html = await page(client, session)
    assert f'src="{address(session, f"attached/{image.pk}/")}"' in html
    assert 'alt="a.png, 37 × 21" width="37" height="21"' in html
    assert f'name="attached" value="{image.pk}" form="composer"' in html


async def test_several_images_keep_their_order(client, session):
    await attach(client, session, file(name="b.png"), file(name="a.png"))

    assert [image.name for image in await attached(session)] == ["b.png", "a.png"]


async def test_script_is_answered_with_the_images_as_they_are_now(client, session):
    response = await attach(client, session, file(), headers=HTMX)

    html = response.content.decode()
    assert response.status_code == 200
    assert 'id="attachments"' in html
    assert 'hx-swap-oob="true"' in html
    assert html.count("<li") == 1


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"hello", "A.png is not an image"),
        (b"", "A.png is empty"),
        (padded(PNG, 5 * 2**20 + 1), "up to 5 MB"),
    ],
)
async def test_unfit_file_is_refused_with_the_reason(client, session, data, words):
    response = await attach(client, session, file(data), headers=HTMX)

    assert response.status_code == 422
    assert words in response.content.decode()
    assert await attached(session) == []


async def test_form_without_a_file_is_refused(client, session):
    response = await client.post(address(session, "attach/"), headers=HTMX)

    assert response.status_code == 422
    assert "No image was chosen." in response.content.decode()


async def test_model_that_cannot_see_gets_no_images_and_no_button(client, make_session):
    session = await make_session(model="demo/demo-text")

    response = await attach(client, session, file(), headers=HTMX)

    assert response.status_code == 422
    assert "demo/demo-text cannot see images" in response.content.decode()
    assert 'id="attach"' not in await page(client, session)


async def test_limits_stand_in_the_page_before_anything_is_sent(client, session):
    html = await page(client, session)

    assert 'data-bytes="5242880" data-total="20971520" data-count="20"' in html
    assert "PNG, JPEG, GIF or WebP, up to 5.0\xa0MB each, 20 per message" in html


async def test_image_is_thrown_away(client, session):
    await attach(client, session, file())
    (image,) = await attached(session)

    response = await client.post(
        address(session, "detach/"), {"image": image.pk}, headers=HTMX
    )

    assert response.status_code == 200
    assert "<li" not in response.content.decode()
    assert await attached(session) == []


@pytest.mark.parametrize("image", ["", "x", "-1"])
async def test_what_is_no_image_cannot_be_thrown_away(client, session, image):
    response = await client.post(
        address(session, "detach/"), {"image": image}, headers=HTMX
    )

    assert response.status_code == 422


async def test_waiting_image_is_shown_as_what_its_bytes_are(client, session):
    gif = picture("GIF")
    await attach(client, session, file(gif, "a.png"))
    (image,) = await attached(session)

    response = await client.get(address(session, f"attached/{image.pk}/"))

    assert response.content == gif
    assert response["Content-Type"] == "image/gif"
    assert response["X-Content-Type-Options"] == "nosniff"


async def test_image_of_another_session_is_not_shown(client, make_session):
    one, other = await make_session(), await make_session()
    await attach(client, one, file())
    (image,) = await attached(one)

    response = await client.get(address(other, f"attached/{image.pk}/"))
    await client.post(address(other, "detach/"), {"image": image.pk})

    assert response.status_code == 404
    assert len(await attached(one)) == 1


async def test_sent_message_takes_its_images_along(client, session):
    await attach(client, session, file(), file(picture("GIF"), "b.gif"))
    one, two = await attached(session)

    await client.post(
        address(session, "send/"), {"text": "look", "attached": [one.pk, two.pk]}
    )

    await until(session)
    assert await attached(session) == []
    kinds = [e.kind for e in await sync_to_async(reader.events)(session.trace_id)]
    assert kinds.count("image_url") == 2


async def test_image_without_words_can_be_sent(client, session):
    await attach(client, session, file())
    (image,) = await attached(session)

    response = await client.post(
        address(session, "send/"), {"text": "", "attached": image.pk}
    )

    assert response.status_code == 303
    assert await attached(session) == []


async def test_message_of_a_button_leaves_the_images_in_the_composer(client, session):
    await attach(client, session, file())
    (image,) = await attached(session)

    await client.post(
        address(session, "send/"), {"suggestion": "say hi", "attached": image.pk}
    )

    assert len(await attached(session)) == 1


@pytest.mark.parametrize("ids", [["x"], ["9" * 30], ["-1"]])
async def test_unknown_images_are_left_out(client, session, ids):
    response = await client.post(
        address(session, "send/"), {"text": "say hi", "attached": ids}
    )

    assert response.status_code == 303


async def test_refused_message_keeps_all_its_images_in_the_form(client, session):
    await attach(client, session, file(), file())
    one, two = await attached(session)
    await runtime.archive(session.pk, True)

    response = await client.post(
        address(session, "send/"), {"text": "look", "attached": [one.pk, two.pk]}
    )

    html = response.content.decode()
    assert response.status_code == 409
    assert re.findall(r'name="attached" value="(\d+)"', html) == [
        str(one.pk),
        str(two.pk),
    ]


@sync_to_async
def frame_of(session) -> str:
    session = Session.objects.select_related("project", "agent").get(pk=session.pk)
    return fragments.status_html(session, [])


async def test_open_pages_are_told_of_waiting_and_queued_images(client, session):
    await attach(client, session, file(), file())
    message = await QueuedMessage.objects.acreate(session=session, text="later")
    await AttachedImage.objects.filter(session=session).aupdate(message=message)
    await attach(client, session, file(name="new.png"))

    html = await frame_of(session)

    assert "“later”, 2 images" in html
    assert html.count('class="attachment"') == 1
    assert "new.png" in html
    assert "base64" not in html


async def test_image_of_a_message_is_shown_by_its_address_in_the_chat(client, session):
    await attach(client, session, file(picture("PNG", (400, 300), compress_level=0)))
    (image,) = await attached(session)
    await client.post(address(session, "send/"), {"text": "l", "attached": image.pk})
    await until(session)

    html = await page(client, session)

    (shown,) = re.findall(r'<img src="([^"]+/images/[^"]+)"([^>]*)>', html)
    assert 'width="400" height="300" loading="lazy"' in shown[1]
    assert "base64" not in html
    assert (await client.get(shown[0]))["Content-Type"] == "image/png"
