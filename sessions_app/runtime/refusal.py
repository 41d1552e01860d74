"""Why a request cannot be done: one error with what a page or the API needs of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db import DatabaseError

from sessions_app.engine.decision import RecordError
from traces_app import database_errors
from traces_app.writer import TraceWriteError


class Refusal(Exception):
    """A person asked for what cannot be done now; nothing was changed.

    `status` is the HTTP status that says it, `code` the stable word for programs,
    the text a sentence for people that names the value and the remedy.
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        status: int = 422,
        details: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.status = status
        self.details = dict(details or {})


def not_found(what: str) -> Refusal:
    """Return the answer for a thing that is not there, or not for this person."""
    return Refusal("not_found", f"{what} does not exist.", status=404)


def conflict(code: str, message: str, **details: Any) -> Refusal:
    """Return the answer for a thing that is in another state than assumed."""
    return Refusal(code, message, status=409, details=details)


def invalid(field: str, message: str) -> Refusal:
    """Return the answer for a value that cannot be taken."""
    return Refusal("invalid", message, status=422, details={"field": field})


def not_stored(error: BaseException) -> Refusal | None:
    """Return the answer when nothing can be stored now; None for any other fault."""
    if isinstance(error, (RecordError, TraceWriteError)):
        text = str(error)
    elif not isinstance(error, (DatabaseError, OSError)):
        return None
    elif database_errors.lasting_cause(error):
        text = database_errors.sentence(error)
    else:
        return None
    text += " What is stored is safe; try again when that is mended."
    return Refusal("not_stored", text, status=503)
