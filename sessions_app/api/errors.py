"""One shape for every error of the API, whoever raised it.

`{"error": {"code", "message", "details"}}`: for errors of the calls, of the framework
(`json_errors` rewrites what was answered before or around a call) and for faults.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Any

from asgiref.sync import iscoroutinefunction
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.http.response import HttpResponseBase
from django.utils.decorators import sync_and_async_middleware
from ninja import NinjaAPI
from ninja.errors import HttpError, ValidationError

from sessions_app.config.documents import DocumentError
from sessions_app.config.yaml_positions import Problem
from sessions_app.runtime import Refusal
from sessions_app.runtime.configs import StaleBase
from sessions_app.runtime.refusal import not_stored

logger = logging.getLogger(__name__)

PREFIX = "/api/v1/"
_CODES = {
    400: "bad_request",
    401: "unauthorized",
    403: "forbidden",
    404: "not_found",
    405: "method_not_allowed",
    413: "too_large",
    415: "unsupported_media_type",
    422: "invalid",
}
_MESSAGES = {
    400: "The request cannot be understood.",
    401: "Send a valid token as `Authorization: Bearer`, or log in.",
    403: "Your role does not allow this.",
    404: "There is no such thing, or none you may see.",
    405: "This address does not answer to this method.",
    413: "The body is too large.",
    415: "Send the body as application/json.",
    422: "A value is not valid.",
    500: "The server failed; its log says why.",
}


class ApiError(Exception):
    """A call cannot be answered; carries everything of the answer."""

    def __init__(
        self, status: int, message: str = "", *, code: str = "", details: Any = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.code = code
        self.details = details


def error_response(
    status: int, message: str = "", *, code: str = "", details: Any = None
) -> JsonResponse:
    """Return the answer for an error."""
    error = {
        "code": code or _CODES.get(status, "error" if status < 500 else "server_error"),
        "message": message or _MESSAGES.get(status, "The request failed."),
        "details": {} if details is None else details,
    }
    response = JsonResponse({"error": error}, status=status)
    if status == 401:
        response["WWW-Authenticate"] = "Bearer"
    return response


def problem_json(problem: Problem) -> dict[str, Any]:
    """Return a problem of a document as the API tells it."""
    return {
        "path": problem.path,
        "line": problem.line,
        "column": problem.column,
        "message": problem.message,
    }


def add_handlers(api: NinjaAPI) -> None:
    """Let the API answer every exception in the one shape."""
    handlers: dict[type[Exception], Callable[[HttpRequest, Any], HttpResponse]] = {
        ApiError: lambda _, e: error_response(
            e.status, e.message, code=e.code, details=e.details
        ),
        Refusal: lambda _, e: error_response(
            e.status, e.message, code=e.code, details=e.details
        ),
        Http404: lambda _, e: error_response(404),
        PermissionDenied: lambda _, e: error_response(403, str(e)),
        ValidationError: _on_validation_error,
        DocumentError: _on_document_error,
        StaleBase: _on_stale_base,
        HttpError: _on_http_error,
        Exception: _on_fault,
    }
    for kind, handler in handlers.items():
        api.add_exception_handler(kind, handler)


def _on_validation_error(_: HttpRequest, error: ValidationError) -> HttpResponse:
    details = []
    for entry in error.errors:
        # The first parts name the place in the request and the schema: not of use.
        path = ".".join(str(part) for part in entry["loc"][2:]) or str(entry["loc"][-1])
        details.append({"path": path, "message": entry["msg"]})
    message = "; ".join(f"{entry['path']}: {entry['message']}" for entry in details)
    return error_response(422, message, details=details)


def _on_document_error(_: HttpRequest, error: DocumentError) -> HttpResponse:
    return error_response(
        422,
        "The config document is not valid.",
        code="invalid_document",
        details=[problem_json(problem) for problem in error.problems],
    )


def _on_stale_base(_: HttpRequest, error: StaleBase) -> HttpResponse:
    return error_response(
        409,
        f"Nothing was saved: {error}. Look at it and save on top of it.",
        code="stale_base",
        details={"version": error.number},
    )


def _on_http_error(_: HttpRequest, error: HttpError) -> HttpResponse:
    if error.status_code == 400:  # ninja's word for a body that is no JSON
        return error_response(422, "The body is not valid JSON.", code="invalid_json")
    return error_response(error.status_code)


def _on_fault(request: HttpRequest, error: Exception) -> HttpResponse:
    logger.exception("%s %s failed", request.method, request.path, exc_info=error)
    if refusal := not_stored(error):
        return error_response(refusal.status, refusal.message, code=refusal.code)
    return error_response(500)


SyncView = Callable[[HttpRequest], HttpResponseBase]
AsyncView = Callable[[HttpRequest], Awaitable[HttpResponseBase]]


@sync_and_async_middleware
def json_errors(respond: SyncView | AsyncView) -> SyncView | AsyncView:
    """Give errors that no call of the API made (404, 405, bad hosts) its shape."""
    if iscoroutinefunction(respond):

        async def answer(request: HttpRequest) -> HttpResponseBase:
            return _reshaped(request, await respond(request))

        return answer

    def answer_sync(request: HttpRequest) -> HttpResponseBase:
        response = respond(request)
        assert isinstance(response, HttpResponseBase)
        return _reshaped(request, response)

    return answer_sync


def _reshaped(request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
    is_json = response.headers.get("Content-Type", "").startswith("application/json")
    if not request.path.startswith(PREFIX) or response.status_code < 400 or is_json:
        return response
    reshaped = error_response(response.status_code)
    if "Allow" in response.headers:
        reshaped["Allow"] = response.headers["Allow"]
    return reshaped
