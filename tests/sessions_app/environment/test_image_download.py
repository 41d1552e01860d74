"""Downloads from real servers on loopback, and the addresses that are never asked."""

from pathlib import Path

import httpx
import pytest

from sessions_app.environment.images import MAX_BYTES, ImageError
from tests.pictures import picture
from tests.sessions_app.environment.downloads import fetch, resolver

PNG = picture()
LOCAL = ["127.0.0.1"]


async def test_allowed_host_is_asked_even_on_loopback(web):
    url = web.serve("/a.png", PNG)

    assert await fetch(url, LOCAL) == PNG


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "2130706433", "0x7f.1", "0177.0.0.1", "[::ffff:127.0.0.1]"],
)
async def test_forbidden_number_is_never_connected_to(web, host):
    web.serve("/a.png", PNG)

    with pytest.raises(ImageError, match=r"loopback address.*images\.allowed_hosts"):
        await fetch(web.url("/a.png", host))

    assert web.asked == []


async def test_name_that_leads_to_a_forbidden_number_is_not_asked(web):
    web.serve("/a.png", PNG)
    resolve = resolver(inside_example="127.0.0.1")

    with pytest.raises(ImageError, match=r"inside.example leads to 127.0.0.1, a loop"):
        await fetch(web.url("/a.png", "inside.example"), resolve=resolve)

    assert web.asked == []


async def test_one_forbidden_number_among_several_is_enough(web):
    resolve = resolver(mixed_example="8.8.8.8 10.0.0.7")

    with pytest.raises(ImageError, match=r"mixed.example leads to 10.0.0.7, a private"):
        await fetch("http://mixed.example/", resolve=resolve)


async def test_name_is_resolved_once_and_the_judged_number_is_asked(web):
    """A second answer of the resolver changes nothing."""
    web.serve("/a.png", PNG)
    answers = ["127.0.0.1", "10.0.0.1"]

    async def resolve(host, port):
        return [answers.pop(0)]

    allowed = ["rebinding.example"]
    url = web.url("/a.png", "rebinding.example")

    assert await fetch(url, allowed, resolve=resolve) == PNG
    assert answers == ["10.0.0.1"]
    assert web.asked == [(f"rebinding.example:{web.port}", "/a.png")]


async def test_unknown_host_is_named():
    with pytest.raises(ImageError, match=r"nowhere\.example cannot be found"):
        await fetch("http://nowhere.example/", resolve=resolver())


async def test_next_number_is_tried_when_one_does_not_answer(web):
    web.serve("/a.png", PNG)
    resolve = resolver(two_example="127.0.0.2 127.0.0.1")

    url = web.url("/a.png", "two.example")

    assert await fetch(url, ["two.example"], resolve=resolve) == PNG


async def test_refused_connection_is_told():
    with pytest.raises(ImageError, match="no connection"):
        await fetch("http://127.0.0.1:1/", LOCAL)


async def test_proxy_and_password_files_of_the_host_are_not_used(web, monkeypatch):
    for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    netrc = Path.home() / ".netrc"
    netrc.write_text("machine 127.0.0.1 login me password secret\n")
    netrc.chmod(0o600)
    url = web.serve("/a.png", PNG)

    assert await fetch(url, LOCAL) == PNG
    assert "authorization" not in web.headers[0]
    assert web.headers[0]["accept-encoding"] == "identity"


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_redirect_is_followed(web, status):
    web.serve("/b.png", PNG)
    url = web.redirect("/a.png", "/b.png", status)

    assert await fetch(url, LOCAL) == PNG


async def test_five_redirects_are_followed_and_six_are_not(web):
    for step in range(6):
        web.redirect(f"/{step}", f"/{step + 1}")
    web.serve("/6", PNG)

    assert await fetch(web.url("/1"), LOCAL) == PNG
    with pytest.raises(ImageError, match="more than 5 redirects"):
        await fetch(web.url("/0"), LOCAL)


async def test_circle_of_redirects_ends(web):
    web.redirect("/a", "/b")
    url = web.redirect("/b", "/a")

    with pytest.raises(ImageError, match="more than 5 redirects"):
        await fetch(url, LOCAL)


@pytest.mark.parametrize(
    "place",
    ["http://169.254.169.254/latest/", "//127.1/x", "https://inside.example/x"],
)
async def test_every_redirect_is_judged_anew(place):
    asked: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(str(request.url))
        return httpx.Response(302, headers={"location": place})

    resolve = resolver(public_example="8.8.8.8", inside_example="10.0.0.1")

    with pytest.raises(ImageError, match="address, and is not asked"):
        await fetch(
            "http://public.example/a.png",
            resolve=resolve,
            transport=httpx.MockTransport(answer),
        )

    assert asked == ["http://8.8.8.8/a.png"]


async def test_redirect_may_lead_from_one_public_host_to_another():
    def answer(request: httpx.Request) -> httpx.Response:
        if request.headers["host"] == "public.example":
            return httpx.Response(301, headers={"location": "https://cdn.example/b"})
        return httpx.Response(200, stream=httpx.ByteStream(PNG))

    resolve = resolver(public_example="8.8.8.8", cdn_example="2606:4700::1111")
    found = await fetch(
        "http://public.example/a.png",
        resolve=resolve,
        transport=httpx.MockTransport(answer),
    )

    assert found == PNG


async def test_allowed_host_cannot_lead_to_one_that_is_not(web):
    """Else a call let through for the one would ask the other."""
    url = web.redirect("/a.png", "http://8.8.8.8/?d=SECRET")

    with pytest.raises(ImageError, match=r"call again with that address"):
        await fetch(url, LOCAL)


@pytest.mark.parametrize("place", ["file:///etc/passwd", "ftp://x/a.png", "http://"])
async def test_redirect_to_another_scheme_is_refused(web, place):
    url = web.redirect("/a.png", place)

    with pytest.raises(ImageError):
        await fetch(url, LOCAL)


async def test_redirect_to_nowhere_is_refused(web):
    url = web.redirect("/a.png", "")

    with pytest.raises(ImageError, match="redirects to no address"):
        await fetch(url, LOCAL)


@pytest.mark.parametrize("status", [404, 500, 204, 206])
async def test_status_stands_in_the_text(web, status):
    web.pages["/a.png"] = lambda answer: answer.give(status, b"")

    with pytest.raises(ImageError, match=f"answered {status}"):
        await fetch(web.url("/a.png"), LOCAL)


@pytest.mark.parametrize("content_type", [None, "application/octet-stream", "image/x"])
async def test_content_counts_where_the_type_says_nothing_else(web, content_type):
    url = web.serve("/a", PNG, content_type)

    assert await fetch(url, LOCAL) == PNG


@pytest.mark.parametrize("content_type", ["text/html", "application/json"])
async def test_other_content_type_is_refused_by_name(web, content_type):
    url = web.serve("/a.png", PNG, f"{content_type}; charset=utf-8")

    with pytest.raises(ImageError, match=f"answered with {content_type},"):
        await fetch(url, LOCAL)


async def test_packed_answer_is_refused(web):
    web.pages["/a"] = lambda answer: answer.give(200, PNG, content_encoding="gzip")

    with pytest.raises(ImageError, match="content encoding gzip"):
        await fetch(web.url("/a"), LOCAL)


async def test_declared_size_is_refused_before_the_body_is_read(web):
    def announce(answer):
        answer.give(200, b"", content_type="image/png", content_length=str(6 * 2**20))
        answer.hang()

    web.pages["/a.png"] = announce

    with pytest.raises(ImageError, match=r"too large \(6,291,456 bytes\)"):
        await fetch(web.url("/a.png"), LOCAL)

    assert web.has_left.wait(5)


async def test_undeclared_size_is_cut_off_at_the_limit(web):
    def pour(answer):
        answer.send_response(200)
        answer.end_headers()
        while not answer.server.owner.is_closing.is_set():
            answer.wfile.write(bytes(64 * 1024))

    web.pages["/a.png"] = pour

    with pytest.raises(ImageError, match="too large"):
        await fetch(web.url("/a.png"), LOCAL)


async def test_largest_allowed_body_is_read(web):
    url = web.serve("/a.png", bytes(MAX_BYTES))

    assert len(await fetch(url, LOCAL)) == MAX_BYTES


async def test_broken_answer_is_told(web):
    def break_off(answer):
        answer.give(200, PNG, content_length=str(len(PNG) + 9))
        answer.connection.close()

    web.pages["/a.png"] = break_off

    with pytest.raises(ImageError, match=r"http://127.0.0.1.*: "):
        await fetch(web.url("/a.png"), LOCAL)
