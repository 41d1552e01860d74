"""Says in a sentence why the database did not take a write."""

from __future__ import annotations

import errno
import sqlite3

from django.db import DatabaseError, InterfaceError, OperationalError

from traces_app.append_only import REFUSAL

# SQLite's primary result codes and PostgreSQL's SQLSTATE (whole or class).
_SENTENCES: dict[int | str, str] = {
    sqlite3.SQLITE_FULL: "the disk or the database's size limit is full",
    sqlite3.SQLITE_READONLY: "the database may only be read",
    sqlite3.SQLITE_BUSY: "another program has held the database locked for too long",
    sqlite3.SQLITE_LOCKED: "another connection has held a table locked for too long",
    sqlite3.SQLITE_IOERR: "the disk answered with an error",
    sqlite3.SQLITE_CANTOPEN: "the database file cannot be opened",
    sqlite3.SQLITE_CORRUPT: "the database file is damaged",
    sqlite3.SQLITE_NOTADB: "the file is not a database",
    "53": "the database server is out of disk space or connections",
    "25006": "the database may only be read",
    "57": "the database server is shutting down",
    "08": "the connection to the database server is lost",
}
_OF_FILES = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk quota is used up",
    errno.EROFS: "the disk may only be read",
    errno.EIO: "the disk answered with an error",
}
_TAKEN = (
    sqlite3.SQLITE_CONSTRAINT_UNIQUE,
    sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY,
    "23505",
)
_TURN_TAKING = ("40P01", "40001")  # deadlock, serialization failure


def lasting_cause(error: BaseException) -> str | None:
    """Return why any write would fail now, or None when only this one did."""
    if isinstance(error, OSError):
        return _OF_FILES.get(error.errno or 0)
    code = _code(error)
    if isinstance(code, int):
        return _SENTENCES.get(code & 0xFF)
    if code:
        return _SENTENCES.get(code) or _SENTENCES.get(code[:2])
    if isinstance(error, (InterfaceError, OperationalError)):
        return _SENTENCES["08"]
    return None


def is_worth_another_try(error: BaseException) -> bool:
    """Return whether two writers stood in each other's way."""
    return _code(error) in _TURN_TAKING


def is_taken(error: BaseException) -> bool:
    """Return whether another row has the place already.

    SQLite's triggers refuse an insert over an existing row before its unique key does.
    """
    return _code(error) in _TAKEN or REFUSAL in str(error)


def sentence(error: DatabaseError | OSError) -> str:
    """Return what to tell people: the cause, and the database's own words."""
    cause = lasting_cause(error) or "the database refused the write"
    return f"The record could not be written: {cause} ({error})."


def _code(error: BaseException) -> int | str | None:
    cause = error.__cause__ or error
    code = getattr(cause, "sqlite_errorcode", None)
    if code is None:
        code = getattr(cause, "sqlstate", None)
    return code
