"""Images of events: handed out as what their bytes are, and to readers only."""

import re

import pytest
from django.contrib.auth.models import User

from tests.pictures import picture
from traces_app.erasure import erase_body
from traces_app.models import TraceEvent
from traces_app.omnimessage import (
    StopReason,
    image_url,
    tool_call,
    tool_call_output,
    user_text,
)
from traces_app.omnimessage import payloads as p
from traces_app.omnimessage.image_data import data_url
from traces_app.omnimessage.message import OmniMessage

pytestmark = pytest.mark.django_db

PNG = picture("PNG", (37, 21))
GIF = picture("GIF", (5, 4))
LARGE = picture("PNG", (300, 300), compress_level=0)
URL = data_url(PNG, "image/png")


@pytest.fixture
def admin(client, project):
    user = User.objects.create_superuser("ada", password="x")
    client.force_login(user)
    return user


@pytest.fixture
def trace(make_trace):
    """A record: 2 a message, 3 its image, 4 and 5 a call whose output holds two."""
    return make_trace(
        [
            user_text("look"),
            image_url(URL),
            tool_call("read_image", '{"source": "a.png"}', "c1"),
            tool_call_output(
                "c1",
                "two images",
                StopReason.COMPLETED,
                images=(data_url(GIF, "image/gif"), data_url(LARGE, "image/png")),
            ),
        ]
    )


def address(trace, seq: int, number: int = 0) -> str:
    return f"/p/default/s/{trace.session_id}/images/{seq}/{number}/"


def page_of(client, trace, seq: int) -> str:
    path = f"/p/default/s/{trace.session_id}/trace/?event={seq}"
    return client.get(path).content.decode()


@pytest.mark.parametrize(
    ("seq", "number", "data", "kind"),
    [
        (3, 0, PNG, "image/png"),
        (5, 0, GIF, "image/gif"),
        (5, 1, LARGE, "image/png"),
    ],
)
def test_image_is_handed_out_byte_for_byte(
    client, admin, trace, seq, number, data, kind
):
    response = client.get(address(trace, seq, number))

    assert response.status_code == 200
    assert response.content == data
    assert response["Content-Type"] == kind
    assert response["X-Content-Type-Options"] == "nosniff"
    assert response["Content-Disposition"].startswith("inline; filename=")


@pytest.mark.parametrize(
    ("seq", "number"), [(1, 0), (2, 0), (3, 1), (5, 2), (99, 0), (2**63, 0)]
)
def test_place_without_an_image_is_not_found(client, admin, trace, seq, number):
    assert client.get(address(trace, seq, number)).status_code == 404


@pytest.mark.parametrize(
    "url",
    [
        data_url(b"<svg onload='x'/>", "image/svg+xml"),
        data_url(b"<script>x</script>", "image/png"),
        "data:text/html;base64,PHNjcmlwdD4=",
        "data:image/png,plain",
        "https://elsewhere.example/a.png",
    ],
)
def test_what_is_no_image_is_never_handed_out(client, admin, make_trace, url):
    trace = make_trace([image_url(url)])

    assert client.get(address(trace, 2)).status_code == 404


def test_type_is_that_of_the_bytes_whatever_the_message_says(client, admin, make_trace):
    payload = p.InlineData(
        role="assistant",
        data=URL.partition(",")[2],
        mime_type="text/html",
    )
    trace = make_trace([OmniMessage(payload=payload)])

    assert client.get(address(trace, 2))["Content-Type"] == "image/png"


def test_image_is_kept_by_its_readers_and_named_by_its_digest(client, admin, trace):
    first = client.get(address(trace, 3))
    again = client.get(address(trace, 3), headers={"If-None-Match": first["ETag"]})

    assert first["Cache-Control"].startswith("private, max-age=")
    assert len(first["ETag"]) == 66
    assert again.status_code == 304
    assert again.content == b""


def test_erased_image_is_gone(client, admin, trace):
    event = TraceEvent.objects.get(trace=trace, seq=3)
    erase_body(event, by="ada", reason="a face")

    assert client.get(address(trace, 3)).status_code == 404


def test_only_members_see_images(client, trace, viewer, stranger):
    assert client.get(address(trace, 3)).status_code == 302

    client.force_login(stranger)
    assert client.get(address(trace, 3)).status_code == 404
    client.force_login(viewer)
    assert client.get(address(trace, 3)).status_code == 200


def test_image_of_another_project_is_not_found(client, admin, trace):
    path = address(trace, 3).replace("/p/default/", "/p/other/")

    assert client.get(path).status_code == 404


@pytest.mark.parametrize("method", ["post", "put", "patch", "delete"])
def test_images_are_only_read(client, admin, trace, method):
    assert getattr(client, method)(address(trace, 3)).status_code == 405


def test_viewer_shows_the_images_of_an_event_and_not_their_letters(
    client, admin, trace
):
    page = page_of(client, trace, 5)

    shown = re.findall(r'<img src="([^"]+)" alt="([^"]+)"([^>]*)>', page)
    assert [src for src, _, _ in shown] == [
        address(trace, 5, 0),
        address(trace, 5, 1),
    ]
    assert "GIF, 5 × 4" in shown[0][1]
    assert 'width="300" height="300" loading="lazy"' in shown[1][2]
    assert "data:image/png;base64," in page  # the raw event begins to tell it
    assert len(page) < 40_000
    assert not re.search(r"[A-Za-z0-9+/]{200,}", page)


def test_viewer_shows_a_sent_image_too(client, admin, trace):
    assert f'<img src="{address(trace, 3)}"' in page_of(client, trace, 3)
