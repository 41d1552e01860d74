"""create_token: the token is the last word on standard output."""

from __future__ import annotations

from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from sessions_app import tokens

pytestmark = pytest.mark.django_db


def made(*arguments: str):
    out = StringIO()
    call_command("create_token", *arguments, stdout=out)
    return tokens.find(out.getvalue().split()[-1])


def test_token_acts_as_its_user_everywhere(operator) -> None:
    token = made("oskar")

    assert token is not None
    assert (token.user, token.project, token.scope) == (operator, None, "")


def test_token_can_be_confined_to_a_project(operator, project) -> None:
    token = made("oskar", "--project", "default")

    assert token is not None
    assert token.project == project


def test_token_can_be_for_metrics_only(operator) -> None:
    token = made("oskar", "--scope", "metrics")

    assert token is not None
    assert token.scope == "metrics"


@pytest.mark.parametrize(
    "arguments",
    [("nobody",), ("oskar", "--project", "none"), ("oskar", "--scope", "x")],
)
def test_unknown_name_is_an_error(operator, arguments) -> None:
    with pytest.raises(CommandError):
        call_command("create_token", *arguments)
