"""Pages are read without the bytes of images; nothing else is ever cut."""

import os

import pytest

from tests.pictures import padded, picture
from traces_app import reader, verify
from traces_app.event_row import row_of
from traces_app.models import Blob
from traces_app.omnimessage import (
    StopReason,
    image_url,
    tool_call,
    tool_call_output,
    user_text,
)
from traces_app.omnimessage.image_data import data_url
from traces_app.pictures import pictures_of

pytestmark = pytest.mark.django_db

LARGE = data_url(padded(picture("PNG", (640, 480)), 200_000), "image/png")
OTHER = data_url(picture("JPEG", (30, 20)) + os.urandom(100_000), "image/jpeg")
TEXT = "letters" * 20_000
BASE64 = "QUJD" * 30_000


@pytest.fixture
def trace(make_trace):
    return make_trace(
        [
            user_text(TEXT),
            image_url(LARGE),
            tool_call("read_image", "{}", "c1"),
            tool_call_output("c1", BASE64, StopReason.COMPLETED, images=(LARGE, OTHER)),
        ]
    )


def test_light_page_holds_all_but_the_bytes_of_images(trace):
    whole = reader.events(trace.pk)
    light = reader.events(trace.pk, is_light=True)

    assert [e.seq for e in light] == [e.seq for e in whole]
    assert light[1].json == whole[1].json
    output = light[4].message.payload
    assert output.output == BASE64
    assert whole[4].message.payload.images == (LARGE, OTHER)
    for image, original in zip(output.images, (LARGE, OTHER), strict=True):
        assert original.startswith(image)
        assert len(image) < 70_000


def test_light_image_still_tells_its_type_and_size(trace):
    _, _, sent, _, output = reader.events(trace.pk, is_light=True)

    (one,) = pictures_of(sent.message.payload)
    _, two = pictures_of(output.message.payload)
    assert (one.label, two.label) == ("PNG, 640 × 480", "JPEG, 30 × 20")


def test_light_reading_of_calls_and_of_everything_is_the_same(trace):
    (_, output) = reader.call_events(trace.pk, "c1", is_light=True)

    assert len(output.json) < 300_000
    assert output.json == list(reader.iter_events(trace.pk, is_light=True))[-1].json


def test_same_image_is_kept_once_and_the_record_stays_whole(trace):
    assert Blob.objects.filter(text=LARGE.partition(",")[2]).count() == 1
    assert verify.verify_trace(trace.session_id).is_intact


def test_filters_and_find_read_light_pages_too(trace):
    (sent,) = reader.events(trace.pk, kinds=("image_url",), is_light=True)
    found = reader.events(trace.pk, q="letters", is_light=True)

    assert sent.seq == 3
    assert [event.seq for event in found] == [2]


def test_row_of_an_image_tells_type_and_size(trace):
    _, _, sent, _, output = reader.events(trace.pk, is_light=True)

    assert row_of(sent).text == "PNG, 640 × 480"
    assert "2 images" in row_of(output).text
