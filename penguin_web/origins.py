"""Whether a request comes from this site's own pages: scheme, host and port together."""

from __future__ import annotations

from collections.abc import Collection

DEFAULT_PORTS = {"http": ":80", "https": ":443"}


def is_own_origin(
    origin: str, *, scheme: str, host: str, trusted: Collection[str]
) -> bool:
    """Compare a whole origin; another port of the same host is another site.

    Cookies ignore ports, so a page that an agent serves on this machine would come
    with this site's cookie: only the origin tells the two apart.
    """
    return _plain(origin) == _plain(f"{scheme}://{host}") or origin in trusted


def _plain(origin: str) -> str:
    scheme, _, host = origin.lower().partition("://")
    return f"{scheme}://{host.removesuffix(DEFAULT_PORTS.get(scheme, ''))}"
