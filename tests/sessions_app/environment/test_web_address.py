"""Addresses: one host however it is written, and which numbers may be asked."""

import ipaddress

import pytest

from sessions_app.environment.images import ImageError
from sessions_app.environment.web_address import WebAddress, literal, why_refused

PUBLIC = [
    "8.8.8.8",
    "193.99.144.80",
    "2606:4700::1111",
    "::ffff:8.8.8.8",
    "64:ff9b::808:808",
    "2002:808:808::",
]
FORBIDDEN = {
    "a loopback address": ["127.0.0.1", "127.8.8.8", "::1", "::ffff:127.0.0.1"]
    + ["::127.0.0.1", "2002:7f00:1::", "64:ff9b::7f00:1"],
    "a link-local address": ["169.254.1.1", "fe80::1", "::ffff:169.254.1.1"],
    "a metadata address": ["169.254.169.254", "::ffff:169.254.169.254"]
    + ["168.63.129.16", "100.100.100.200", "fd00:ec2::254", "64:ff9b::a9fe:a9fe"],
    "a private address": ["10.0.0.1", "172.16.0.1", "192.168.1.1", "100.64.0.1"]
    + ["0.0.0.0", "::", "224.0.0.1", "255.255.255.255", "198.18.0.1", "192.0.2.1"]
    + ["fc00::1", "fec0::1", "ff02::1", "2001::1", "64:ff9b:1::1", "2001:db8::1"],
}
SPELLINGS = [
    "127.0.0.1",
    "2130706433",
    "0x7f000001",
    "0x7F.0.0.1",
    "0177.0.0.1",
    "017700000001",
    "127.1",
    "127.0.1",
    "127.0.0.1.",
    "\uff11\uff12\uff17.0.0.1",
    "127\u30020\u30020\u30021",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[0:0:0:0:0:0:0:1]",
]


@pytest.mark.parametrize("number", PUBLIC)
def test_public_number_may_be_asked(number):
    assert why_refused(ipaddress.ip_address(number)) == ""


@pytest.mark.parametrize(
    ("why", "number"), [(why, n) for why, all_ in FORBIDDEN.items() for n in all_]
)
def test_number_inside_of_a_network_is_refused_by_its_kind(why, number):
    assert why_refused(ipaddress.ip_address(number)) == why


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_loopback_is_loopback_in_every_spelling(spelling):
    address = WebAddress.of(f"http://{spelling}/a.png")

    assert address
    number = literal(address.host)
    assert number
    assert why_refused(number) == "a loopback address"


def test_name_is_no_number():
    assert literal("example.org") is None
    assert literal("0x7f.example.org") is None


@pytest.mark.parametrize("source", ["a.png", "./x/a.png", "a:b.png", "//x/a.png", ""])
def test_path_is_no_address(source):
    assert WebAddress.of(source) is None


@pytest.mark.parametrize(
    ("source", "host", "port", "authority"),
    [
        ("https://Example.ORG/a.png", "example.org", 443, "example.org"),
        (" HTTP://example.org:80/ ", "example.org", 80, "example.org"),
        ("http://example.org:8080", "example.org", 8080, "example.org:8080"),
        ("http://b\u00fccher.example/", "xn--bcher-kva.example", 80, None),
        ("https://[2606:4700::1111]:444/", "2606:4700::1111", 444, None),
        ("http://good.example\\@evil.example/", "evil.example", 80, None),
        ("http://me:secret@example.org/", "example.org", 80, "example.org"),
    ],
)
def test_address_is_taken_apart(source, host, port, authority):
    address = WebAddress.of(source)

    assert address
    assert (address.host, address.port) == (host, port)
    assert authority in (None, address.authority)


@pytest.mark.parametrize(
    "source", ["file:///etc/passwd", "ftp://example.org/a.png", "data:image/png,x"]
)
def test_other_scheme_is_refused_by_name(source):
    with pytest.raises(ImageError, match=f"^{source.partition(':')[0]}: addresses"):
        WebAddress.of(source)


@pytest.mark.parametrize(
    "source",
    ["http://", "http:/a.png", "http://a b/", "http://a..b/", "http://a:99999/"]
    + ["http://exa%6dple/", "http://[::1/", "https://\u00ad/"],
)
def test_broken_address_is_refused(source):
    with pytest.raises(ImageError, match="is no valid address"):
        WebAddress.of(source)


def test_shown_address_holds_no_password_and_no_flood():
    address = WebAddress.of("https://me:secret@example.org/a?b=" + "x" * 500)

    assert address
    assert address.shown.startswith("https://example.org/a?b=x")
    assert len(address.shown) < 250


@pytest.mark.parametrize(
    ("entry", "is_among"),
    [
        ("example.org", True),
        ("EXAMPLE.org", True),
        ("example.org:8080", True),
        ("example.org:80", False),
        ("www.example.org", False),
        ("org", False),
        ("", False),
    ],
)
def test_allowed_host_is_meant_exactly_with_its_port_if_it_names_one(entry, is_among):
    address = WebAddress.of("http://example.org:8080/a.png")

    assert address
    assert address.is_among([entry]) is is_among


@pytest.mark.parametrize("entry", ["::1", "[::1]", "[::1]:8080", "0:0:0:0:0:0:0:1"])
def test_allowed_host_may_be_a_number(entry):
    address = WebAddress.of("http://[::1]:8080/a.png")

    assert address
    assert address.is_among([entry])
