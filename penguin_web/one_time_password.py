"""Whether a user still has the one-time password the first start made for them."""

from __future__ import annotations

import hashlib
from pathlib import Path

from django.conf import settings
from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.http import HttpRequest
from django.utils.functional import SimpleLazyObject


def remember(user: AbstractBaseUser) -> None:
    """Note the user's present password as the one to be changed."""
    _note().write_text(_mark(user))


def is_one_time(user: AbstractBaseUser | AnonymousUser) -> bool:
    """Tell whether the present password is the one that was noted.

    The note is a digest of the stored hash: whichever way the password is changed, the
    two differ from then on and nothing has to be cleared.
    """
    if not isinstance(user, AbstractBaseUser):
        return False
    try:
        return _note().read_text() == _mark(user)
    except FileNotFoundError:
        return False


def notice(request: HttpRequest) -> dict[str, object]:
    """Offer `has_one_time_password` to every template rendered with a request."""
    user = getattr(request, "user", None) or AnonymousUser()
    return {"has_one_time_password": SimpleLazyObject(lambda: is_one_time(user))}


def _note() -> Path:
    return Path(settings.DATA_DIR) / "keys" / "one_time_password"


def _mark(user: AbstractBaseUser) -> str:
    return hashlib.sha256(f"{user.pk}:{user.password}".encode()).hexdigest()
