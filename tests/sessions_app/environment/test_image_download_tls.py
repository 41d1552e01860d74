"""Downloads over TLS: the certificate is that of the name, not of the number asked."""

import ssl

import pytest

from sessions_app.environment.images import ImageError
from tests.pictures import picture
from tests.sessions_app.environment.certificate import certified
from tests.sessions_app.environment.downloads import fetch, resolver
from tests.sessions_app.environment.web_server import WebServer

PNG = picture()


async def test_certificate_must_be_that_of_the_name(tmp_path):
    server_tls, client_tls = certified("images.example", tmp_path)
    resolve = resolver(images_example="127.0.0.1", other_example="127.0.0.1")
    allowed = ["images.example", "other.example"]
    asked_for: list[str] = []
    server_tls.sni_callback = lambda _, name, __: asked_for.append(name)

    with WebServer(server_tls) as web:
        web.serve("/a.png", PNG)
        url = f"https://images.example:{web.port}/a.png"
        right = await fetch(url, allowed, resolve=resolve, tls=client_tls)
        with pytest.raises(ImageError, match="CERTIFICATE_VERIFY_FAILED"):
            await fetch(
                url.replace("images.", "other."),
                allowed,
                resolve=resolve,
                tls=client_tls,
            )

    assert right == PNG
    assert asked_for == ["images.example", "other.example"]
    assert web.asked == [(f"images.example:{web.port}", "/a.png")]


async def test_public_authorities_are_trusted_and_no_others(tmp_path):
    server_tls, _ = certified("images.example", tmp_path)
    resolve = resolver(images_example="127.0.0.1")

    with WebServer(server_tls) as web:
        url = f"https://images.example:{web.port}/a.png"
        with pytest.raises(ImageError, match="CERTIFICATE_VERIFY_FAILED"):
            await fetch(url, ["images.example"], resolve=resolve)


def test_tls_context_is_the_strict_one(tmp_path):
    _, client_tls = certified("images.example", tmp_path)

    assert client_tls.verify_mode is ssl.CERT_REQUIRED
    assert client_tls.check_hostname
