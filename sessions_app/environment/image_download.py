"""Downloads an image without becoming a way into the network the server stands in.

1. The host is resolved and every address it has is judged, unless the project allows
   the host. 2. The connection goes to a judged address itself: a name that resolves
   to something else a moment later changes nothing. `Host`, SNI and certificate are
   those of the name. 3. A redirect is a new address, from step 1 on. 4. What the
   answer says about itself is refused before it is read, the rest as soon as it is
   too much. No proxy, no credentials, no cookies of the host are used.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable, Collection
from functools import lru_cache
from urllib.parse import urljoin

import httpx

from sessions_app.environment.images import KINDS, MAX_BYTES, ImageError, too_large
from sessions_app.environment.web_address import WebAddress, literal, why_refused

MAX_REDIRECTS = 5
CONNECT_S = 10.0
SILENCE_S = 30.0  # between two pieces of an answer; the tool has a limit of its own
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_UNTYPED = frozenset({"", "application/octet-stream", "binary/octet-stream"})
_HEADERS = {
    "Accept": "image/png, image/jpeg, image/gif, image/webp",
    "Accept-Encoding": "identity",  # nothing to unpack: no bomb
    "User-Agent": "Penguin-Web",
}

# Gives the numeric addresses of a host and port; raises OSError.
Resolve = Callable[[str, int], Awaitable[list[str]]]


async def resolve(host: str, port: int) -> list[str]:
    """Ask the system's resolver."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


class Downloader:
    """Fetches bytes from the web for one project."""

    def __init__(
        self,
        allowed_hosts: Collection[str] = (),
        *,
        resolve: Resolve = resolve,
        tls: ssl.SSLContext | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        """Take other edges than the system's: names, trusted authorities, network."""
        self._allowed_hosts = allowed_hosts
        self._resolve = resolve
        self._tls = tls
        self._transport = transport

    async def fetch(self, address: WebAddress) -> bytes:
        """Return what the address answers; raises `ImageError`."""
        for _ in range(MAX_REDIRECTS + 1):
            found = await self._ask_any(address, await self._numbers(address))
            if isinstance(found, bytes):
                return found
            address = self._followed(address, found)
        raise ImageError(f"{address.shown}: more than {MAX_REDIRECTS} redirects")

    def _followed(self, address: WebAddress, location: str) -> WebAddress:
        """Return where a redirect leads.

        From a host the project allows to one it does not, nobody is led: the call
        was perhaps let through because of the first.
        """
        try:
            target = WebAddress.of(urljoin(address.url, location))
        except ValueError:
            target = None
        if target is None or not location:
            raise ImageError(f"{address.shown} redirects to no address")
        is_trusted = address.is_among(self._allowed_hosts)
        if is_trusted and not target.is_among(self._allowed_hosts):
            raise ImageError(
                f"{address.shown} redirects to {target.shown}, on a host the project "
                "does not allow; call again with that address if it is needed"
            )
        return target

    async def _numbers(self, address: WebAddress) -> list[str]:
        """Return the addresses to connect to; raises `ImageError` for any forbidden."""
        number = literal(address.host)
        try:
            numbers = (
                [str(number)]
                if number is not None
                else await self._resolve(address.host, address.port)
            )
        except OSError as error:
            raise ImageError(
                f"the host {address.host} cannot be found: {error.strerror or error}"
            ) from error
        if address.is_among(self._allowed_hosts):
            return numbers
        for text in numbers:
            found = literal(text)
            why = why_refused(found) if found else "an unknown address"
            if why:
                is_name = number is None
                leads = f"leads to {text}, {why}" if is_name else f"is {why}"
                raise ImageError(
                    f"{address.host} {leads}, and is not asked. If it is meant to be, "
                    "the project must list the host under images.allowed_hosts"
                )
        return numbers

    async def _ask_any(self, address: WebAddress, numbers: list[str]) -> bytes | str:
        """Return the body, or where it redirects to, from the first that answers."""
        cause: Exception = OSError("it has no address")
        if self._tls is None:
            self._tls = await asyncio.to_thread(_default_tls)
        for number in numbers:
            try:
                return await self._ask(address, number, self._tls)
            except (httpx.ConnectError, httpx.ConnectTimeout) as error:
                cause = error
            except (httpx.HTTPError, httpx.InvalidURL) as error:
                raise ImageError(f"{address.shown}: {_words(error)}") from error
        raise ImageError(f"{address.shown}: no connection, {_words(cause)}") from cause

    async def _ask(
        self, address: WebAddress, number: str, tls: ssl.SSLContext
    ) -> bytes | str:
        timeout = httpx.Timeout(SILENCE_S, connect=CONNECT_S)
        # A client of its own for each hop: nothing is carried from one to the next.
        async with httpx.AsyncClient(
            verify=tls, trust_env=False, timeout=timeout, transport=self._transport
        ) as client:
            url = httpx.URL(address.url).copy_with(host=number, port=address.port)
            async with client.stream(
                "GET",
                url,
                headers={**_HEADERS, "Host": address.authority},
                extensions={"sni_hostname": address.host},
            ) as response:
                if response.status_code in _REDIRECTS:
                    return str(response.headers.get("location", ""))
                _check(response, address.shown)
                return await _body(response, address.shown)


def _check(response: httpx.Response, name: str) -> None:
    """Refuse an answer for what its head says."""
    status = f"{response.status_code} {response.reason_phrase}".strip()
    if response.status_code != 200:
        raise ImageError(f"{name} answered {status}")
    content_type = response.headers.get("content-type", "").partition(";")[0]
    content_type = content_type.strip().lower()
    if content_type not in _UNTYPED and not content_type.startswith("image/"):
        raise ImageError(f"{name} answered with {content_type}, not with a {KINDS}")
    encoding = response.headers.get("content-encoding", "identity").strip().lower()
    if encoding != "identity":
        raise ImageError(f"{name} answered with the content encoding {encoding}")
    length = response.headers.get("content-length", "")
    if length.isdecimal() and int(length) > MAX_BYTES:
        raise too_large(name, int(length))


async def _body(response: httpx.Response, name: str) -> bytes:
    body = bytearray()
    async for piece in response.aiter_raw():
        body += piece
        if len(body) > MAX_BYTES:
            raise too_large(name)
    return bytes(body)


@lru_cache(maxsize=1)
def _default_tls() -> ssl.SSLContext:
    """Return what trusts the public authorities; reading them blocks."""
    return httpx.create_ssl_context(trust_env=False)


def _words(error: Exception) -> str:
    return str(error) or type(error).__name__
