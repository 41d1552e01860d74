"""Who is calling: a token, or the login cookie with a CSRF token; and what they send."""

from __future__ import annotations

import copy
import json
from typing import Any, NoReturn

from asgiref.sync import sync_to_async
from django.conf import settings
from django.contrib.auth.models import User
from django.http import HttpRequest
from ninja.parser import Parser
from ninja.security.http import HttpAuthBase
from ninja.utils import check_csrf

from sessions_app import tokens
from sessions_app.api.errors import ApiError
from sessions_app.permissions import confine

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
JSON_TYPE = "application/json"


class Credentials(HttpAuthBase):
    """Finds the user of a request; refuses a body it should not even look at.

    A request with an Authorization header is judged by that header alone: a wrong
    token is not made good by a cookie.
    """

    openapi_scheme = "bearer"

    def __init__(self, *, takes_any_body: bool = False) -> None:
        super().__init__()
        self._takes_any_body = takes_any_body

    async def __call__(self, request: HttpRequest) -> User:
        """Return the user; raises `ApiError`."""
        header = request.headers.get("Authorization")
        if header is None:
            user = await _user_of_cookie(request)
        else:
            user = await _user_of_token(header)
        request.user = user
        if "\x00" in request.path:
            raise ApiError(404)  # no name holds one, and not every database takes it
        if not self._takes_any_body:
            _check_body(request)
        return user


async def _user_of_token(header: str) -> User:
    scheme, _, text = header.partition(" ")
    if scheme.lower() != "bearer":
        raise ApiError(401)
    token = await sync_to_async(tokens.find)(text.strip())
    if token is None:
        raise ApiError(401)
    if token.scope:
        raise ApiError(403, f"This token is for {token.scope} only.")
    if token.project is not None:
        confine(token.user, token.project.slug)
    return token.user


async def _user_of_cookie(request: HttpRequest) -> User:
    user = await request.auser()
    if not user.is_authenticated:
        raise ApiError(401)
    if request.method not in SAFE_METHODS:
        # As a PUT, the check looks for the token in the header alone: the body is not
        # a form, and reading it as one would use it up.
        probe = copy.copy(request)
        probe.method = "PUT"
        if check_csrf(probe) is not None:
            message = "Send the CSRF token as X-CSRFToken, or use an API token."
            raise ApiError(403, message, code="csrf")
    return user


def _check_body(request: HttpRequest) -> None:
    length = request.META.get("CONTENT_LENGTH") or "0"
    if length.isdigit() and int(length) > settings.DATA_UPLOAD_MAX_MEMORY_SIZE:
        raise ApiError(413)
    has_body = length != "0" or "Transfer-Encoding" in request.headers
    if has_body and request.content_type != JSON_TYPE:
        raise ApiError(415)


class StrictJson(Parser):
    """JSON as the standard has it; a key given twice could mean either value."""

    def parse_body(self, request: HttpRequest) -> Any:
        """Return the parsed body; raises `ValueError`."""
        return json.loads(
            request.body, object_pairs_hook=_unique, parse_constant=_refuse_constant
        )


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise ValueError("a key is given twice")
    return result


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")
