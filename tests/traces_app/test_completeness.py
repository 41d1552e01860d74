"""The second verdict: every call has one decision and one output, requests end."""

import pytest

from tests.traces_app.conftest import decision, session_meta, turn
from traces_app.completeness import Completeness
from traces_app.omnimessage import StopReason, event, tool_call, tool_call_output
from traces_app.omnimessage import payloads as p

META = session_meta("session-x")
USER, BEGIN, CALL, END, ALLOW, STARTED, OUTPUT = turn()[:7]
DENY = decision("call_1", "deny")
ABORT = event(p.Abort(reason="interrupt"))


def fold(*messages, may_go_on: bool = True):
    """Return (finding, what is in progress)."""
    completeness = Completeness()
    for seq, message in enumerate(messages, start=1):
        completeness.feed(seq, message.kind, message.to_dict())
    is_open = completeness.finish(may_go_on=may_go_on)
    return completeness.finding, is_open


def test_whole_turn_is_complete():
    assert fold(META, *turn()) == (None, "")


def test_denied_call_needs_no_start():
    assert fold(META, BEGIN, CALL, END, DENY, OUTPUT) == (None, "")


@pytest.mark.parametrize(
    ("messages", "what"),
    [
        ([META, BEGIN], "the request begun at #2 has not ended"),
        (
            [META, BEGIN, CALL, END],
            "the call call_1 (exec_command, #3) has no decision",
        ),
        ([META, BEGIN, CALL, END, ALLOW, STARTED], "has no output"),
    ],
)
def test_what_is_open_at_the_end_is_in_progress(messages, what):
    finding, is_open = fold(*messages)

    assert finding is None
    assert what in is_open


def test_what_is_open_in_a_record_that_does_not_go_on_is_incomplete():
    finding, is_open = fold(META, BEGIN, CALL, END, ALLOW, may_go_on=False)

    assert finding.seq == 3
    assert "no output" in finding.sentence
    assert is_open == ""


@pytest.mark.parametrize(
    ("messages", "seq", "words"),
    [
        ([], 1, "no event"),
        ([USER], 1, "no session_meta"),
        ([META, BEGIN, BEGIN], 2, "has not ended before the next request at #3"),
        (
            [META, BEGIN, CALL, END, ALLOW, BEGIN],
            3,
            "no output before the next request",
        ),
        ([META, BEGIN, CALL, END, BEGIN], 3, "no decision before the next request"),
        ([META, END], 2, "never began"),
        ([META, BEGIN, CALL, CALL], 4, "stands twice"),
        ([META, BEGIN, CALL, END, ALLOW, DENY], 6, "decided twice"),
        ([META, ALLOW], 2, "not in the record"),
        ([META, BEGIN, CALL, END, OUTPUT], 5, "no decision"),
        ([META, BEGIN, CALL, END, ALLOW, OUTPUT, OUTPUT], 7, "two outputs"),
        ([META, OUTPUT], 2, "not in the record"),
        ([META, BEGIN, CALL, END, STARTED], 5, "started undecided"),
        ([META, BEGIN, CALL, END, DENY, STARTED], 6, "denied, and started"),
        ([META, BEGIN, CALL, END, ABORT], 3, "aborted at #5"),
        ([META, event(p.Damaged(line=2, reason="torn"))], 2, "line 2"),
    ],
)
def test_first_thing_out_of_order_is_found(messages, seq, words):
    finding, _ = fold(*messages)

    assert finding.seq == seq
    assert words in finding.sentence


def test_abort_is_forgotten_when_the_session_goes_on():
    messages = [META, BEGIN, END, ABORT, USER, BEGIN]

    assert fold(*messages) == (None, "the request begun at #6 has not ended")


def test_calls_of_a_child_session_are_the_childs():
    call = tool_call("exec_command", "{}", "call_9").with_origin("session-child")

    assert fold(META, call) == (None, "")


def test_outputs_may_come_in_any_order():
    calls = [tool_call("exec_command", "{}", f"c{n}") for n in range(3)]
    decisions = [decision(f"c{n}") for n in range(3)]
    outputs = [tool_call_output(f"c{n}", "", StopReason.COMPLETED) for n in (2, 0, 1)]

    assert fold(META, BEGIN, *calls, END, *decisions, *outputs) == (None, "")


def test_gap_in_seq_is_found():
    completeness = Completeness()
    completeness.feed(1, "session_meta", META.to_dict())
    completeness.feed(3, "text", USER.to_dict())
    completeness.finish(may_go_on=True)

    assert completeness.finding.seq == 2
