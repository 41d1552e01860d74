"""One line per event, in a few words."""

import pytest

from traces_app.event_row import row_of
from traces_app.omnimessage import (
    OmniMessage,
    StopReason,
    event,
    tool_call,
    tool_call_output,
    user_text,
)
from traces_app.omnimessage import payloads as p
from traces_app.stored_event import StoredEvent


def row(message: OmniMessage, **more):
    fields = {"json": message.to_json(), "kind": message.kind} | more
    return row_of(
        StoredEvent(
            seq=1,
            segment=1,
            hash="00",
            size=0,
            timestamp=message.timestamp,
            type=message.type,
            **fields,
        )
    )


@pytest.mark.parametrize(
    ("message", "text"),
    [
        (user_text("a\n b"), "user: a b"),
        (tool_call("exec_command", '{"cmd": "ls"}', "c"), "exec_command ls"),
        (
            tool_call_output("c", "hi", StopReason.FAILED, details={"exit_code": 2}),
            "exit 2, 2 characters: hi",
        ),
        (
            event(p.RequestEnd(status=StopReason.TIMEOUT, retry_in_ms=2000)),
            "timeout, next attempt in 2.0 s",
        ),
        (
            event(p.ModeChanged(from_mode="a", to_mode="b", by=None)),
            "a → b, by nobody",
        ),
        (
            event(p.ConfigInForce(version={"project": 1, "agent": 2})),
            "project 1, agent 2",
        ),
    ],
)
def test_row_tells_what_happened(message, text):
    assert row(message).text == text


def test_denial_names_who_and_how_long_it_waited():
    payload = p.ApprovalDecision(
        decision="deny",
        tool_call_id="c",
        source="user",
        via="key",
        decided_by="ann",
        waited_ms=41_000,
        reason="not on prod",
        arguments_sha256="",
    )

    shown = row(event(payload))

    assert (shown.icon, shown.by, shown.took) == ("denied", "ann", "41.0 s")
    assert shown.text == "deny by user, key, “not on prod”"


def test_long_text_is_cut():
    assert len(row(user_text("x" * 10_000)).text) == 240


def test_event_that_cannot_be_read_still_has_a_row():
    shown = row(user_text("x"), json="{broken")

    assert shown.kind == "text"
    assert shown.text.startswith("cannot be read")


def test_event_of_a_subagent_says_its_path():
    assert row(user_text("x").with_origin("session-child")).agent == (
        "root › session-child"
    )
