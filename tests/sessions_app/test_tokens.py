"""API tokens: shown once, found by hash, worthless when revoked."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from sessions_app import tokens
from sessions_app.models import ApiToken

pytestmark = pytest.mark.django_db


@pytest.fixture
def user() -> User:
    return User.objects.create_user("ann")


def test_token_is_found_by_its_text(user: User) -> None:
    row, text = tokens.issue(user)

    found = tokens.find(text)

    assert found == row
    assert text.startswith("penguin_")


def test_only_a_hash_is_stored(user: User) -> None:
    _, text = tokens.issue(user)

    (values,) = ApiToken.objects.values()
    assert text not in str(values)
    assert values["last_four"] == text[-4:]


@pytest.mark.parametrize("text", ["", "penguin_", "penguin_x\0", "\ud800", "é"])
def test_other_text_finds_nothing(user: User, text: str) -> None:
    tokens.issue(user)

    assert tokens.find(text) is None


def test_revoked_token_finds_nothing(user: User) -> None:
    row, text = tokens.issue(user)
    row.revoked_at = timezone.now()
    row.save()

    assert tokens.find(text) is None


def test_token_of_an_inactive_user_finds_nothing(user: User) -> None:
    _, text = tokens.issue(user)
    User.objects.update(is_active=False)

    assert tokens.find(text) is None


def test_use_is_noted_once_a_minute(user: User) -> None:
    row, text = tokens.issue(user)

    tokens.find(text)
    row.refresh_from_db()
    first = row.last_used_at
    tokens.find(text)
    row.refresh_from_db()

    assert first is not None
    assert row.last_used_at == first
