"""Triggers by which the database itself refuses to change the record."""

from __future__ import annotations

from typing import Any


def prepare_connection(**_: Any) -> None:
    """Filled in below."""


def after_migrate(**_: Any) -> None:
    """Filled in below."""
