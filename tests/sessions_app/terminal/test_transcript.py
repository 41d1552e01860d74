"""A session in plain text: whole, in order, and harmless to a terminal."""

from __future__ import annotations

import io

import pytest

from sessions_app.terminal.transcript import Transcript, harmless
from traces_app.omnimessage import (
    OmniMessage,
    StopReason,
    assistant_text,
    event,
    thinking,
    tool_call,
    tool_call_output,
    user_text,
)
from traces_app.omnimessage import payloads as p

DONE = StopReason.COMPLETED


def shown(*messages: OmniMessage) -> tuple[str, str]:
    out, err = io.StringIO(), io.StringIO()
    transcript = Transcript(out, err)
    for message in messages:
        transcript.take(message)
    return out.getvalue(), err.getvalue()


def piece(text: str) -> OmniMessage:
    payload = p.PartialText(role="assistant", event_type="delta", text=text)
    return OmniMessage(payload=payload)


def printed(call_id: str, text: str) -> OmniMessage:
    return OmniMessage(
        payload=p.PartialToolCallOutput(
            role="user", event_type="delta", tool_call_id=call_id, output=text
        )
    )


def test_text_that_streamed_is_not_written_twice():
    out, _ = shown(piece("Hel"), piece("lo"), assistant_text("Hello"))

    assert out == "Hello\n"


def test_end_of_a_text_that_no_piece_held_is_written():
    out, _ = shown(piece("Hel"), assistant_text("Hello"), assistant_text("Bye"))

    assert out == "Hello\nBye\n"


def test_thinking_has_its_heading():
    assert shown(thinking("hm"), assistant_text("so"))[0] == "[thinking]\nhm\nso\n"


def test_output_follows_its_call():
    out, _ = shown(
        tool_call("exec_command", '{"cmd": "ls -a"}', "c1"),
        printed("c1", "one\n"),
        tool_call_output("c1", "one\ntwo", DONE),
    )

    assert out == "→ exec_command ls -a\none\ntwo\n"


def test_outputs_of_parallel_calls_are_told_apart():
    out, _ = shown(
        tool_call("exec_command", '{"cmd": "a"}', "c1"),
        tool_call("exec_command", '{"cmd": "b"}', "c2"),
        printed("c2", "from b"),
        printed("c1", "from a"),
        tool_call_output("c2", "from b, all", DONE),
        tool_call_output("c1", "from a", DONE),
    )

    assert out.splitlines() == [
        "→ exec_command a",
        "→ exec_command b",
        "from b",
        "← exec_command a",
        "from a",
        "← exec_command b",
        ", all",
    ]


def test_a_child_s_words_carry_its_name():
    out, _ = shown(assistant_text("hi").with_origin("session-child"))

    assert out == "[subagent session-child]\nhi\n"


def test_the_person_s_own_message_is_not_repeated():
    assert shown(user_text("do it")) == ("", "")


@pytest.mark.parametrize(
    ("payload", "words"),
    [
        (p.Abort(reason="interrupted"), "Stopped: interrupted\n"),
        (
            p.RequestEnd(
                status=StopReason.FAILED,
                attempt=2,
                retry_in_ms=4000,
                error_message="503",
            ),
            "The model request failed (failed): 503; attempt 2, the next in 4 s\n",
        ),
        (p.RequestEnd(status=StopReason.COMPLETED), ""),
    ],
)
def test_troubles_go_to_standard_error(payload, words):
    assert shown(event(payload)) == ("", words)


def test_images_are_counted():
    out, _ = shown(tool_call_output("c1", "[no output]", DONE, images=("data:x",)))

    assert out.endswith("[no output]\n[images: 1]\n")


def test_nothing_steers_the_terminal():
    out, err = shown(
        assistant_text("a\x1b[2Jb\u202ec"), event(p.Abort(reason="\x1b]0;x\x07"))
    )

    assert out == "a\\u{1b}[2Jb\\u{202e}c\n"
    assert "\x1b" not in err and "\x07" not in err
    assert harmless("tab\tand\nline") == "tab\tand\nline"
