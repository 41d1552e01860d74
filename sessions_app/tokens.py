"""API tokens: made once, shown once, found again by their hash."""

from __future__ import annotations

import hashlib
import secrets
from datetime import timedelta

from django.contrib.auth.models import User
from django.utils import timezone

from sessions_app.models import ApiToken, Project

METRICS_SCOPE = "metrics"
_PREFIX = "penguin_"
# A write per request would make every read wait for the database's one writer.
_USE_NOTED_EVERY = timedelta(minutes=1)


def issue(
    user: User, *, project: Project | None = None, scope: str = ""
) -> tuple[ApiToken, str]:
    """Make a token; its text is returned here and never again."""
    row = ApiToken(user=user, project=project, scope=scope)
    text = fill(row)
    row.save()
    return row, text


def fill(row: ApiToken) -> str:
    """Give a row that is not saved yet a new token; returns its text."""
    text = _PREFIX + secrets.token_urlsafe(32)
    row.sha256, row.last_four = _digest(text), text[-4:]
    return text


def find(text: str) -> ApiToken | None:
    """Return the valid token with that text, its user and project loaded."""
    tokens = ApiToken.objects.select_related("user", "project")
    token = tokens.filter(
        sha256=_digest(text), revoked_at__isnull=True, user__is_active=True
    ).first()
    if token is not None:
        _note_use(token)
    return token


def _note_use(token: ApiToken) -> None:
    now = timezone.now()
    if token.last_used_at is None or now - token.last_used_at > _USE_NOTED_EVERY:
        ApiToken.objects.filter(pk=token.pk).update(last_used_at=now)


def _digest(text: str) -> str:
    # The text is 256 random bits: a slow hash would protect nothing more.
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
