"""What the first bytes of an image tell, and data: URLs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.pictures import picture, png_that_says
from traces_app.omnimessage.image_data import (
    bytes_of,
    data_url,
    head_of,
    image_size,
    image_type,
)

KINDS = {
    "image/png": picture("PNG", (37, 21)),
    "image/jpeg": picture("JPEG", (37, 21)),
    "image/gif": picture("GIF", (37, 21)),
    "image/webp": picture("WEBP", (37, 21)),
}


@pytest.mark.parametrize("mime_type", KINDS)
def test_type_and_size_are_told_by_the_bytes(mime_type):
    assert image_type(KINDS[mime_type]) == mime_type
    assert image_size(KINDS[mime_type]) == (37, 21)


@pytest.mark.parametrize(
    "data",
    [
        picture("WEBP", (37, 21), lossless=True),
        picture("WEBP", (37, 21), mode="RGBA", lossless=True, exact=True),
        picture("WEBP", (37, 21), exif=b"Exif\0\0MM\0*"),
        picture("JPEG", (37, 21), progressive=True),
        picture("JPEG", (37, 21), icc_profile=bytes(40_000)),
    ],
)
def test_every_variant_tells_its_size(data):
    assert image_size(data) == (37, 21)


@pytest.mark.parametrize(
    "data", [b"", b"BM\x3a\0", b"<svg/>", b"RIFF\0\0\0\0WAVE", b"\x89PNG", b"GIF88a"]
)
def test_other_bytes_have_no_type(data):
    assert image_type(data) is None
    assert image_size(data) is None


@pytest.mark.parametrize("mime_type", KINDS)
def test_cut_image_has_a_type_but_perhaps_no_size(mime_type):
    data = KINDS[mime_type]

    for length in range(12, len(data)):
        assert image_size(data[:length]) in (None, (37, 21))


@given(st.sampled_from(sorted(KINDS)), st.binary(max_size=64))
def test_hostile_bytes_behind_a_signature_raise_nothing(mime_type, tail):
    image_size(KINDS[mime_type][:12] + tail)


def test_data_url_gives_its_bytes_back():
    assert bytes_of(data_url(b"\x00\xff", "image/png")) == b"\x00\xff"


@pytest.mark.parametrize(
    "url",
    [
        "https://example.org/a.png",
        "data:image/png,plain",
        "data:image/png;base64,A",
        "data:image/png;base64,A A=",
        "data:image/png;base64,äöü",
    ],
)
def test_what_is_no_base64_data_url_has_no_bytes(url):
    assert bytes_of(url) is None


def test_head_of_a_cut_url_still_tells_type_and_size():
    url = data_url(png_that_says(640, 480) + bytes(100_000), "image/png")

    assert image_size(head_of(url[:101])) == (640, 480)
    assert len(head_of(url)) == 48 * 1024
    assert head_of("https://example.org/a.png") == b""
