"""Pages of errors: what happened, what is safe, what to do."""

from __future__ import annotations

import json
import logging
from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.middleware.csrf import (
    REASON_BAD_ORIGIN,
    REASON_BAD_REFERER,
    get_token,
)
from django.shortcuts import render
from django.utils.deprecation import MiddlewareMixin

from sessions_app.runtime.refusal import not_stored
from sessions_app.views.answers import is_htmx, kept_of

logger = logging.getLogger(__name__)

OLD_PAGE = (
    "The page you sent this from was too old, perhaps from before a login. "
    "Nothing was changed."
)
API_PREFIX = "/api/"
# Beginnings of what Django says when a request came from another site's page.
_FOREIGN = tuple(
    reason.partition("%")[0] for reason in (REASON_BAD_ORIGIN, REASON_BAD_REFERER)
)


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Say that there is nothing here, or nothing this person may see."""
    return _page(
        request, 404, "This does not exist, or you may not see it.", "404.html"
    )


def forbidden(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Say what the person's role does not allow."""
    reason = str(exception)
    reason = reason[:1].upper() + reason[1:]
    text = f"{reason}. Nothing was changed." if reason else "You may not do this."
    return _page(request, 403, text, "403.html")


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """Answer a stale form token: nothing is lost, a second press works.

    Another site's page gets no such help.
    """
    if request.path.startswith(API_PREFIX):
        error = {"code": "csrf", "message": reason, "details": {}}
        return JsonResponse({"error": error}, status=403)
    if reason.startswith(_FOREIGN):
        return _page(request, 403, "This came from another site's page.", "403.html")
    token = get_token(request)
    if is_htmx(request):
        text = f"{OLD_PAGE} Press again: it works now."
        context = {"text": text}
        response = render(request, "partials/notice.html", context, status=403)
        response["HX-Trigger"] = json.dumps({"token-renewed": {"token": token}})
        return response
    page: dict[str, Any] = {"status": 403, "reason": OLD_PAGE, "back": "/"}
    return render(request, "403_csrf.html", page | kept_of(request), status=403)


class StorageErrors(MiddlewareMixin):
    """Says why nothing can be stored, and keeps what was typed, on every page."""

    def process_exception(
        self, request: HttpRequest, error: Exception
    ) -> HttpResponse | None:
        """Answer when the disk or the database is the cause, and only then."""
        refusal = not_stored(error)
        if refusal is None:
            return None
        logger.error("%s %s failed", request.method, request.path, exc_info=error)
        if is_htmx(request):
            return _page(request, refusal.status, refusal.message, "409.html")
        page = {"status": refusal.status, "reason": refusal.message, "back": "/"}
        context = page | kept_of(request)
        return render(request, "409.html", context, status=refusal.status)


def _page(request: HttpRequest, status: int, text: str, name: str) -> HttpResponse:
    context: dict[str, Any] = {"reason": text, "text": text}
    template = "partials/notice.html" if is_htmx(request) else name
    return render(request, template, context, status=status)
