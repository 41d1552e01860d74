"""Which web addresses may be asked: names as written, numbers as they are reached.

Pure functions. A name is judged by what it resolves to; a number in any spelling
(decimal, octal, hex, short, IPv4 inside IPv6) is the number it stands for.
"""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self
from urllib.parse import urlsplit

from sessions_app.environment.images import ImageError

IPAddress = ipaddress.IPv4Address | ipaddress.IPv6Address

SHOWN = 200  # characters of an address in a text
_SCHEME = re.compile(r"([a-zA-Z][a-zA-Z0-9+.-]*):(//)?")
_NEVER_PATHS = frozenset({"http", "https", "file", "ftp", "data", "blob", "javascript"})
_PORTS = {"http": 80, "https": 443}
_HOST = re.compile(r"[a-z0-9_-]+(?:\.[a-z0-9_-]+)*")
# Where clouds tell a machine its secrets; not all of these are in private space.
_METADATA = frozenset(
    ipaddress.ip_address(number)
    for number in (
        "169.254.169.254",
        "169.254.170.2",
        "100.100.100.200",
        "168.63.129.16",
        "192.0.0.192",
        "fd00:ec2::254",
    )
)
_PUBLIC_V6 = ipaddress.ip_network("2000::/3")
_TEREDO = ipaddress.ip_network("2001::/32")
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_COMPATIBLE = ipaddress.ip_network("::/96")


@dataclass(frozen=True, slots=True, kw_only=True)
class WebAddress:
    """An http(s) address taken apart."""

    url: str
    scheme: str
    host: str  # ASCII, lower case, without brackets and final dot
    port: int

    @classmethod
    def of(cls, source: str) -> Self | None:
        """Return the address, None for what is a path.

        Raises `ImageError` for another scheme and for an address without a host.
        """
        url = source.strip()
        found = _SCHEME.match(url)
        if not found or not (found[2] or found[1].lower() in _NEVER_PATHS):
            return None
        scheme = found[1].lower()
        if scheme not in _PORTS:
            raise ImageError(
                f"{scheme}: addresses cannot be read; give the path of a file in the "
                "workspace, or an http(s) URL"
            )
        try:
            parts = urlsplit(url)
            host, port = _ascii_host(parts.hostname), parts.port
        except ValueError as error:
            raise ImageError(f"{shown(url)} is no valid address: {error}") from error
        return cls(url=url, scheme=scheme, host=host, port=port or _PORTS[scheme])

    @property
    def authority(self) -> str:
        """Return what the `Host` header says."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        is_usual = self.port == _PORTS[self.scheme]
        return host if is_usual else f"{host}:{self.port}"

    @property
    def shown(self) -> str:
        """Return the address for a text: no password, no end."""
        _, _, rest = self.url.partition("://")
        path = re.search(r"[/?#].*", rest, re.DOTALL)
        return shown(f"{self.scheme}://{self.authority}{path[0] if path else ''}")

    def is_among(self, hosts: Iterable[str]) -> bool:
        """Return whether one of `HOST` or `HOST:PORT` names it."""
        return any(
            self.host == host and port in (None, self.port)
            for host, port in map(_host_and_port, hosts)
        )


def shown(text: str) -> str:
    """Return a source as a text names it."""
    return text if len(text) <= SHOWN else text[:SHOWN] + "…"


def literal(host: str) -> IPAddress | None:
    """Return the number that a host is, in whatever spelling; None for a name."""
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        pass
    try:
        return ipaddress.IPv4Address(socket.inet_aton(host))
    except (OSError, ValueError):
        return None


def why_refused(address: IPAddress) -> str:
    """Return what kind of address it is that may not be asked, "" for a public one."""
    inner = _inner(address)
    if address in _METADATA or inner in _METADATA:
        return "a metadata address"
    if inner.is_loopback:
        return "a loopback address"
    if inner.is_link_local:
        return "a link-local address"
    if inner.is_unspecified or inner.is_multicast or not inner.is_global:
        return "a private address"
    if inner.version == 6 and (inner not in _PUBLIC_V6 or inner in _TEREDO):
        return "a private address"
    return ""


def _inner(address: IPAddress) -> IPAddress:
    """Return the IPv4 address that an IPv6 one leads to, else the address itself."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    found = address.ipv4_mapped or address.sixtofour
    if found is not None:
        return found
    if address in _NAT64 or (address in _COMPATIBLE and int(address) > 1):
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address


def _ascii_host(host: str | None) -> str:
    """Return the host as it is asked for; raises `ValueError`."""
    if not host:
        raise ValueError("it names no host")
    if ":" in host:
        return str(ipaddress.IPv6Address(host))
    name = host if host.isascii() else host.encode("idna").decode("ascii")
    name = name.lower().removesuffix(".")
    if not _HOST.fullmatch(name):
        raise ValueError(f"{host!r} is no host")
    return name


def _host_and_port(text: str) -> tuple[str, int | None]:
    """Take apart an entry of the project's list; IPv6 comes with brackets or bare."""
    text = text.strip().lower()
    if text.count(":") > 1 and not text.startswith("["):
        text = f"[{text}]"
    try:
        parts = urlsplit(f"//{text}")
        return _ascii_host(parts.hostname), parts.port
    except ValueError:
        return "", None
