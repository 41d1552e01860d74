"""Item names are the same in record order, in yield order and from the Trace."""

from __future__ import annotations

from sessions_app.runtime.items import ItemNames, is_text_item, kind_of
from traces_app.omnimessage import (
    OmniMessage,
    assistant_text,
    event,
    thinking,
    tool_call,
    user_text,
)
from traces_app.omnimessage.payloads import PartialText, PartialThinking, RequestBegin


def piece(kind):
    return OmniMessage(payload=kind(role="assistant", event_type="delta"))


def test_pieces_and_complete_messages_name_the_same_item():
    names, pieces = ItemNames(), ItemNames()
    for follower in (names, pieces):
        follower.of_complete(event(RequestBegin()), 7)

    assert pieces.of_piece(piece(PartialThinking)) == ("think-7-0", "thinking")
    assert names.of_complete(thinking("hm"), 8) == "think-7-0"
    pieces.of_complete(thinking("hm"), 8)
    assert pieces.of_piece(piece(PartialText)) == ("text-7-1", "text")
    assert names.of_complete(assistant_text("yes"), 9) == "text-7-1"


def test_other_messages_have_no_item_and_do_not_count():
    names = ItemNames(7)

    assert names.of_complete(user_text("hi"), 8) is None
    assert names.of_complete(tool_call("t", "{}", "c"), 9) is None
    assert names.of_complete(assistant_text("a"), 10) == "text-7-0"


def test_each_request_counts_anew():
    names = ItemNames(7, 3)

    names.of_complete(event(RequestBegin(attempt=2)), 20)

    assert names.of_complete(assistant_text("a"), 21) == "text-20-0"


def test_kinds_follow_from_the_name():
    assert kind_of("text-1-0") == "text"
    assert kind_of("think-1-0") == "thinking"
    assert kind_of("proc-00ff00ff") == "output"
    assert is_text_item("think-1-0") and not is_text_item("call_1")
