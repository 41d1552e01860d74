"""Notes who signed in, and who tried to, in the instance journal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.models import AbstractBaseUser

from traces_app import journal
from traces_app.omnimessage.codec import storable


def note_sign_in(user: AbstractBaseUser, **_: Any) -> None:
    """Note a person who signed in."""
    journal.record("sign_in", user.get_username())


def note_failed_sign_in(credentials: Mapping[str, Any], **_: Any) -> None:
    """Note an attempt; a name nobody has is left out, people type passwords there.

    So guessing names makes one entry an hour and not one a name.
    """
    name = storable(str(credentials.get("username", "")))
    people = get_user_model()
    is_known = people._default_manager.filter(**{people.USERNAME_FIELD: name}).exists()
    journal.record("sign_in_failed", name if is_known else "")
