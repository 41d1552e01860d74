"""What a session used: its own requests and its subagents', each counted once."""

from __future__ import annotations

import pytest

from traces_app import writer
from traces_app.figures import usd
from traces_app.omnimessage import event, user_text
from traces_app.omnimessage.payloads import TokenUsage, Usage
from traces_app.spending import spending_of

pytestmark = pytest.mark.django_db


def used(output: int) -> Usage:
    return Usage(output=output, total=output)


def make(session_id: str, *counts: tuple[int, float | None], parent: str = "") -> None:
    """A record whose running totals are the given ones."""
    trace = writer.create_trace(
        session_id=session_id, project="default", parent_session_id=parent
    )
    for output, dollars in counts:
        counted = TokenUsage(session=used(output), request=used(1), session_usd=dollars)
        writer.append(trace.pk, [event(counted), user_text("between")])


def test_last_running_total_counts():
    make("session-a", (10, 0.1), (30, 0.3))

    spent = spending_of("session-a")

    assert (spent.usage, spent.cost_usd) == (used(30), 0.3)


def test_subagents_count_once_for_the_parent_and_alone_for_themselves():
    make("session-a", (10, 0.1))
    make("session-b", (5, 0.2), parent="session-a")
    make("session-c", (7, None), parent="session-a")
    make("session-d", (99, 9.9))

    parent, child = spending_of("session-a"), spending_of("session-b")

    assert (parent.usage, parent.cost_usd) == (used(22), 0.3)
    assert (child.usage, child.cost_usd) == (used(5), 0.2)


def test_session_without_requests_used_nothing():
    make("session-a")

    assert spending_of("session-a").usage == Usage()
    assert spending_of("session-none").cost_usd is None


@pytest.mark.parametrize(
    ("dollars", "text"),
    [
        (0, "$0.00"),
        (0.00001, "<$0.0001"),
        (0.034959, "$0.0350"),
        (12.4, "$12.40"),
        (1234.5, "$1,234.50"),
    ],
)
def test_money_is_written_as_people_read_it(dollars, text):
    assert usd(dollars) == text
