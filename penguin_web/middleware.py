"""What every answer carries and every unsafe request must show, whatever the view."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import cast

from asgiref.sync import iscoroutinefunction
from django.conf import settings
from django.core.exceptions import DisallowedHost
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.http.response import HttpResponseBase
from django.utils.decorators import sync_and_async_middleware

from penguin_web.origins import is_own_origin

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})
OTHER_SITES = frozenset({"cross-site", "same-site"})
API_PREFIX = "/api/"
HEADERS = {
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
}

SyncView = Callable[[HttpRequest], HttpResponseBase]
AsyncView = Callable[[HttpRequest], Awaitable[HttpResponseBase]]


@sync_and_async_middleware
def guard(respond: SyncView | AsyncView) -> SyncView | AsyncView:
    """Refuse unsafe requests of other sites' pages; add the headers Django leaves out."""
    if iscoroutinefunction(respond):
        return _async_guard(cast("AsyncView", respond))
    return _sync_guard(cast("SyncView", respond))


def _async_guard(respond: AsyncView) -> AsyncView:
    async def answer(request: HttpRequest) -> HttpResponseBase:
        return _finished(request, _refusal(request) or await respond(request))

    return answer


def _sync_guard(respond: SyncView) -> SyncView:
    def answer(request: HttpRequest) -> HttpResponseBase:
        return _finished(request, _refusal(request) or respond(request))

    return answer


def _refusal(request: HttpRequest) -> HttpResponse | None:
    """Check Origin on unsafe requests; a program that sends none has no foreign page.

    Such a program still needs a CSRF token for its cookie, or a bearer token.
    """
    if request.method in SAFE_METHODS:
        return None
    origin = request.headers.get("Origin")
    if origin is None:
        is_foreign = request.headers.get("Sec-Fetch-Site") in OTHER_SITES
    else:
        try:
            host = request.get_host()
        except DisallowedHost:
            return None  # answered as 400 further in
        is_foreign = not is_own_origin(
            origin,
            scheme=request.scheme or "http",
            host=host,
            trusted=settings.CSRF_TRUSTED_ORIGINS,
        )
    if not is_foreign:
        return None
    message = "The request came from a page of another site and was refused."
    if request.path.startswith(API_PREFIX):
        error = {"code": "foreign_origin", "message": message, "details": {}}
        return JsonResponse({"error": error}, status=403)
    return HttpResponse(message, status=403, content_type="text/plain")


def _finished(request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
    for name, value in HEADERS.items():
        response.headers.setdefault(name, value)
    if request.is_secure():
        for cookie in response.cookies.values():
            cookie["secure"] = True
    return response
