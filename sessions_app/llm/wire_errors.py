"""Puts what went wrong with a request into the tree of `client`, cause included."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterator, Mapping
from typing import Any

from sessions_app.llm.client import (
    CredentialsError,
    InvalidRequestError,
    LLMError,
    MalformedStreamError,
)

_MAX_WORDS = 1000  # characters of a provider's words; some answer with a whole page
_INVALID = {400, 404, 413, 422}
# For errors inside a stream, whose status line already said 200.
_STATUS_OF_TYPE = {
    "authentication_error": 401,
    "permission_error": 403,
    "invalid_api_key": 401,
    "invalid_request_error": 400,
    "exceed_context_size_error": 400,
    "context_length_exceeded": 400,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "server_error": 500,
    "overloaded_error": 529,
}
_TOO_LONG_CODES = {
    "exceed_context_size_error",
    "context_length_exceeded",
    "request_too_large",
    "413",
}
_TOO_LONG_WORDS = ("prompt is too long", "maximum context length", "context window")


def status_error(
    *, status: int | None, body: Any, text: str, provider: str, key_hint: str
) -> LLMError:
    """Return the error for an answer of the provider that says what is wrong.

    `status` is that of the response, or None for an error inside the stream.
    """
    error = _error_object(body)
    codes = [str(error[name]) for name in ("code", "type") if error.get(name)]
    if status is None or status < 400:
        status = next(filter(None, map(_status_of, codes)), None)
    words = _words(error) or text
    said = f"{provider} answered {status}" if status else f"{provider} reports an error"
    named = ", ".join(
        code for code in codes if code not in words and code != str(status)
    )
    message = f"{said}: {_cut(words)}" + (f" ({named})" if named else "")
    if status in (401, 403):
        return CredentialsError(f"{message}; {key_hint}")
    if status in _INVALID:
        is_too_long = status == 413 or not _TOO_LONG_CODES.isdisjoint(codes)
        is_too_long = is_too_long or any(w in words.lower() for w in _TOO_LONG_WORDS)
        return InvalidRequestError(message, is_too_long=is_too_long)
    return LLMError(message)


def connection_error(
    error: BaseException, *, provider: str, address: str, has_begun: bool
) -> LLMError:
    """Return the error for a connection that failed, or broke after it `has_begun`."""
    cause = root_cause(error)
    if has_begun:
        return MalformedStreamError(f"the stream of {provider} broke off: {cause}")
    return LLMError(f"no connection to {provider} at {address}: {cause}")


def cut_answer(finish_reason: str, *, tool: str | None) -> LLMError:
    """Return the error for an answer cut before it held what can be kept."""
    if finish_reason in ("content_filter", "refusal"):
        return InvalidRequestError(f"the provider refuses to answer ({finish_reason})")
    place = f"in the arguments of {tool}" if tool else "before any text"
    return MalformedStreamError(
        f"the answer was cut off {place} (finish reason {finish_reason}); "
        "a higher max_tokens or a shorter conversation gives it more room"
    )


def root_cause(error: BaseException) -> str:
    """Return the deepest cause in words: `ECONNREFUSED (Connection refused)`."""
    chain = list(causes(error))
    for link in reversed(chain):
        if isinstance(link, OSError) and (link.errno or 0) in errno.errorcode:
            number = link.errno or 0
            return f"{errno.errorcode[number]} ({os.strerror(number)})"
    deepest = next((link for link in reversed(chain) if str(link)), chain[-1])
    return f"{type(deepest).__name__}: {deepest}".removesuffix(": ")


def causes(error: BaseException | None) -> Iterator[BaseException]:
    """Yield the error and what caused it, the deepest cause last."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        if isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        else:
            error = error.__cause__ or error.__context__


def _error_object(body: Any) -> Mapping[str, Any]:
    """Return the part of the body that describes the error."""
    if isinstance(body, str):
        try:
            body = json.loads(body)
        except ValueError:
            return {"message": body}
    if not isinstance(body, Mapping):
        return {}
    inner = body.get("error", body)
    return inner if isinstance(inner, Mapping) else {"message": inner}


def _words(error: Mapping[str, Any]) -> str:
    for name in ("message", "detail"):
        value = error.get(name)
        if value:
            return value if isinstance(value, str) else json.dumps(value)
    return ""


def _status_of(code: str) -> int | None:
    if code.isdecimal() and 400 <= int(code) < 600:
        return int(code)
    return _STATUS_OF_TYPE.get(code)


def _cut(words: str) -> str:
    words = words.strip()
    return words if len(words) <= _MAX_WORDS else words[:_MAX_WORDS] + "…"
