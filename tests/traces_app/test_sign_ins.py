"""Signing in is in the instance journal, and so is failing to."""

import pytest

from traces_app.models import JournalEntry

pytestmark = pytest.mark.django_db


@pytest.fixture
def ann(django_user_model):
    return django_user_model.objects.create_user("ann", password="penguin-pass")


def entries() -> list[tuple[str, str]]:
    return list(JournalEntry.objects.order_by("seq").values_list("kind", "person"))


def sign_in(client, username: str, password: str) -> None:
    client.post("/login/", {"username": username, "password": password})


def test_sign_in_is_noted_once_an_hour(client, ann):
    sign_in(client, "ann", "penguin-pass")
    client.logout()
    sign_in(client, "ann", "penguin-pass")

    assert entries() == [("sign_in", "ann")]


def test_failed_sign_in_of_a_known_person_is_noted(client, ann):
    sign_in(client, "ann", "wrong")

    assert entries() == [("sign_in_failed", "ann")]


def test_names_nobody_has_are_not_written_down(client, ann):
    sign_in(client, "my-secret-password", "x")
    sign_in(client, "another", "x")

    assert entries() == [("sign_in_failed", "")]
