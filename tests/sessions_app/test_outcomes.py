"""What a list says of sessions at rest: told by the last thing that ended."""

from __future__ import annotations

import pytest

from sessions_app.outcomes import Outcome, outcomes_of
from traces_app import writer
from traces_app.omnimessage import StopReason, event, user_text
from traces_app.omnimessage import payloads as p

pytestmark = pytest.mark.django_db

USER = user_text("Go")
ABORT = event(p.Abort(reason="interrupt"))


def end(status: StopReason):
    return event(p.RequestEnd(status=status))


@pytest.mark.parametrize(
    ("messages", "outcome"),
    [
        ([], Outcome.NEW),
        ([USER, end(StopReason.COMPLETED)], Outcome.DONE),
        ([USER, end(StopReason.AUTH)], Outcome.FAILED),
        ([USER, end(StopReason.FAILED), end(StopReason.TIMEOUT)], Outcome.FAILED),
        ([USER, end(StopReason.ABORTED)], Outcome.STOPPED),
        ([USER, end(StopReason.COMPLETED), ABORT], Outcome.STOPPED),
        ([USER, ABORT, USER, end(StopReason.COMPLETED)], Outcome.DONE),
    ],
)
def test_last_end_is_the_outcome(messages, outcome):
    trace = writer.create_trace(session_id="session-a", project="default")
    if messages:
        writer.append(trace.pk, messages)

    assert outcomes_of([trace.pk]) == {trace.pk: outcome}


def test_outcomes_of_many_sessions_are_one_query(django_assert_num_queries):
    ids = []
    for number in range(5):
        trace = writer.create_trace(session_id=f"session-{number}", project="default")
        writer.append(trace.pk, [USER, end(StopReason.COMPLETED)])
        ids.append(trace.pk)

    with django_assert_num_queries(1):
        found = outcomes_of(ids)

    assert found == dict.fromkeys(ids, Outcome.DONE)
