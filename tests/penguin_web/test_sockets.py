"""A WebSocket is opened by this site's pages only, and read through a proxy rightly."""

import pytest
from channels.testing import WebsocketCommunicator

from penguin_web.proxy import ForwardedCaller
from penguin_web.sockets import OwnPagesOnly


async def accept(scope, receive, send):
    await send({"type": "websocket.accept"})


async def is_accepted(application, scheme="ws", **headers):
    pairs = [(name.encode(), value.encode()) for name, value in headers.items()]
    communicator = WebsocketCommunicator(application, "/ws/", headers=pairs)
    communicator.scope["scheme"] = scheme
    accepted, _ = await communicator.connect()
    return accepted


@pytest.mark.parametrize(
    ("origin", "expected"),
    [
        ("http://localhost:8000", True),
        ("http://localhost:9000", False),
        ("http://localhost", False),
        ("https://localhost:8000", False),
        ("http://evil.example", False),
        ("null", False),
    ],
)
async def test_only_the_whole_origin_opens_a_socket(origin, expected):
    application = OwnPagesOnly(accept)

    assert (
        await is_accepted(application, host="localhost:8000", origin=origin) is expected
    )


async def test_program_without_a_page_may_open_one():
    assert await is_accepted(OwnPagesOnly(accept), host="localhost:8000")


async def test_name_the_server_does_not_answer_to_is_refused():
    """A foreign name that points to this machine must not become an own origin."""
    application = OwnPagesOnly(accept)

    assert not await is_accepted(
        application, host="evil.example", origin="http://evil.example"
    )


async def test_trusted_proxy_tells_scheme_and_host(settings):
    settings.ALLOWED_HOSTS = ["penguin.example"]
    application = ForwardedCaller(OwnPagesOnly(accept))

    assert await is_accepted(
        application,
        **{
            "host": "10.0.0.1:8000",
            "x-forwarded-host": "penguin.example",
            "x-forwarded-proto": "https",
            "origin": "https://penguin.example",
        },
    )


async def test_of_forwarded_addresses_the_one_the_proxy_wrote_counts():
    seen = {}

    async def note(scope, receive, send):
        seen.update(scope)

    scope = {
        "type": "http",
        "scheme": "http",
        "client": ["127.0.0.1", 4000],
        "headers": [(b"x-forwarded-for", b"6.6.6.6, 203.0.113.7")],
    }
    await ForwardedCaller(note)(scope, None, None)

    assert seen["client"][0] == "203.0.113.7"
    assert scope["client"][0] == "127.0.0.1"


async def test_unknown_socket_address_is_refused():
    from penguin_web.asgi import application

    communicator = WebsocketCommunicator(application, "/ws/nothing/here/")
    accepted, _ = await communicator.connect()

    assert not accepted
