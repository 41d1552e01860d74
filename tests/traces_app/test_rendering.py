"""A Trace reads as turns: messages, thoughts, calls with their end, notes."""

from dataclasses import replace

import pytest

from traces_app.call_view import call_key, view_call
from traces_app.omnimessage import (
    OmniMessage,
    StopReason,
    assistant_text,
    event,
    image_url,
    thinking,
    tool_call,
    tool_call_output,
    user_text,
)
from traces_app.omnimessage import payloads as p
from traces_app.rendering import (
    FoldView,
    MessageView,
    NoteView,
    PictureView,
    conversation,
    turn_title,
)
from traces_app.stored_event import StoredEvent

PIXEL = "data:image/png;base64,iVBORw0KGgo="


def stored(*messages: OmniMessage) -> list[StoredEvent]:
    return [
        StoredEvent(
            seq=seq,
            segment=1,
            hash="00",
            kind=message.kind,
            json=message.to_json(),
            size=0,
            timestamp=message.timestamp,
            type=message.type,
        )
        for seq, message in enumerate(messages, start=1)
    ]


def read(*messages: OmniMessage):
    return conversation(stored(*messages), agent="agent", author="ada")


def decision(answer="allow", **more):
    fields = {"source": "user", "via": "button", "decided_by": "ada"} | more
    return event(
        p.ApprovalDecision(
            decision=answer, tool_call_id="c1", arguments_sha256="", **fields
        )
    )


CALL = tool_call("exec_command", '{"cmd": "make test"}', "c1")
STARTED = event(p.ToolStarted(tool_call_id="c1"))


def output(reason=StopReason.COMPLETED, text="out\n", **details):
    return tool_call_output("c1", text, reason, details=details)


def view(*messages: OmniMessage):
    return view_call(stored(CALL, *messages))


def test_each_message_of_a_person_begins_a_turn():
    turns = read(user_text("first"), assistant_text("a"), user_text("second\nline"))

    assert [turn.title for turn in turns] == ["", "first", "second"]
    assert [len(turn.entries) for turn in turns] == [0, 2, 1]


def test_words_of_the_product_begin_no_turn():
    turns = read(user_text("go"), user_text("cut off", synthetic="retry"))

    folded = turns[1].entries[1]
    assert len(turns) == 2
    assert isinstance(folded, FoldView)
    assert folded.text == "cut off"


def test_words_of_a_person_are_plain_and_those_of_the_model_are_markdown():
    turns = read(user_text("**a**"), assistant_text("**b**"))

    typed, answered = turns[1].entries
    assert isinstance(typed, MessageView)
    assert (typed.author, typed.html) == ("ada", "")
    assert answered.html == "<p><strong>b</strong></p>\n"


def test_answer_can_offer_messages_to_send():
    message = assistant_text("hello")
    payload = replace(message.payload, extra={"suggestions": ["$ ls", 5]})

    turns = read(replace(message, payload=payload))

    assert turns[0].entries[0].suggestions == ("$ ls",)


def test_parts_of_a_conversation_keep_their_order():
    turns = read(
        user_text("go"), thinking("hm"), CALL, assistant_text("done"), output()
    )

    kinds = [type(entry).__name__ for entry in turns[1].entries]
    assert kinds == ["MessageView", "FoldView", "CallView", "MessageView"]


def test_image_is_shown_from_its_own_bytes_only():
    turns = read(image_url(PIXEL), image_url("https://elsewhere.example/p.png"))

    shown, told = turns[0].entries
    assert isinstance(shown, PictureView)
    assert shown.picture.label.startswith("PNG")
    assert told.picture.label == ""
    assert "https://elsewhere.example/p.png" in told.picture.words


@pytest.mark.parametrize("mime", ["image/svg+xml", "text/html"])
def test_image_of_a_kind_that_can_act_is_not_shown(mime):
    turns = read(image_url(f"data:{mime};base64,PHN2Zz4="))

    assert turns[0].entries[0].picture.label == ""


@pytest.mark.parametrize(
    ("payload", "title"),
    [
        (
            p.ModeChanged(from_mode="always-ask", to_mode="deny-all", by="ada"),
            "deny-all",
        ),
        (p.Abort(reason="interrupted by the user"), "Stopped"),
        (p.Recovered(what="The server restarted"), "Recovered"),
        (p.ProcessEvicted(process_id="proc-1"), "Command ended"),
        (p.Damaged(line=7, reason="no JSON"), "Line 7"),
        (p.RequestEnd(status=StopReason.AUTH, error_message="no key"), "credentials"),
        (p.RequestEnd(status=StopReason.MALFORMED), "broke off"),
    ],
)
def test_what_happened_to_the_session_is_a_note(payload, title):
    (note,) = read(event(payload))[0].entries

    assert isinstance(note, NoteView)
    assert title in note.title


@pytest.mark.parametrize(
    "payload",
    [
        p.RequestBegin(),
        p.RequestEnd(status=StopReason.COMPLETED),
        p.ToolListReady(tools=()),
        p.ConfigInForce(version={"project": 1}),
    ],
)
def test_what_only_an_auditor_needs_is_not_in_the_conversation(payload):
    assert read(event(payload))[0].entries == []


@pytest.mark.parametrize(
    ("messages", "state", "icon"),
    [
        ([], "deciding", "clock"),
        ([decision(), STARTED], "running", "run"),
        ([decision(), STARTED, output(exit_code=0)], "completed", "check"),
        ([decision(), STARTED, output(StopReason.FAILED)], "failed", "warning"),
        ([decision(), STARTED, output(StopReason.TIMEOUT)], "timeout", "clock"),
        ([decision(), STARTED, output(StopReason.ABORTED)], "aborted", "stop"),
        ([decision("deny"), output(StopReason.ABORTED)], "denied", "denied"),
    ],
)
def test_state_of_a_call_follows_from_its_events(messages, state, icon):
    call = view(*messages)

    assert (call.state, call.icon) == (state, icon)


def test_exit_code_of_a_command_is_information_not_a_fault():
    call = view(decision(), STARTED, output(StopReason.FAILED, exit_code=3))

    assert (call.icon, call.tone) == ("terminal", "")
    assert call.facts[0] == "exit 3"


def test_facts_of_a_call_are_ending_time_and_size():
    call = view(
        decision(), output(duration_ms=14_200, output_chars=3100, signal="SIGINT")
    )

    assert call.facts == ("SIGINT", "14.2 s", "3.1 k chars")


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({}, "Allowed by"),
        ({"source": "mode", "mode": "allow-all"}, "Allowed by mode allow-all"),
        ({"source": "rule", "rule": "make *"}, "Allowed by rule make *"),
    ],
)
def test_decision_says_who_made_it(fields, words):
    assert view(decision(**fields)).decision.title == words


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("expiry", "nobody decided in time"),
        ("interrupt", "Cancelled by"),
        ("restart", "the server restarted"),
        ("stream", "broke off"),
        ("policy", "nobody could be asked"),
    ],
)
def test_denial_nobody_made_says_its_cause(source, words):
    assert words in view(decision("deny", source=source, via="auto")).decision.title


def test_what_the_model_did_not_see_is_said():
    call = view(
        decision(), output(text="x" * 16_000, truncated=True, output_chars=200_000)
    )

    assert call.output.saw == "The model saw 16 k characters of 200 k."


def test_id_that_is_unfit_for_an_element_becomes_a_digest():
    assert call_key("call_1") == "call_1"
    for unfit in ("a b", "", "x" * 500, 'a"><script>', "\ud800"):
        assert call_key(unfit).isalnum()
        assert call_key(unfit) != call_key(unfit + "!")


def test_title_of_a_turn_is_its_first_line_that_says_something():
    assert turn_title("\n  \n  Fix it.  \nNow.") == "Fix it."
    assert turn_title("x" * 100) == "x" * 59 + "…"
