from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessions_app.llm.conversation import (
    AssistantBlock,
    UserBlock,
    arguments_object,
    arranged,
    clean,
    wire_name,
)
from sessions_app.llm.openai_request import chat_messages
from traces_app.omnimessage import (
    OmniMessage,
    StopReason,
    assistant_text,
    image_url,
    thinking,
    tool_call,
    tool_call_output,
    user_text,
)
from traces_app.omnimessage import payloads as p


def output(tool_call_id, text="out"):
    return tool_call_output(tool_call_id, text, StopReason.COMPLETED)


def test_outputs_stand_behind_their_calls_in_call_order():
    calls = [tool_call("ls", "{}", "a"), tool_call("ls", "{}", "b")]
    late = [output("b"), user_text("and?"), output("a")]

    answer, user = arranged([*calls, *late])

    assert isinstance(answer, AssistantBlock)
    assert [answer.output_of(call).tool_call_id for call in answer.calls] == ["a", "b"]
    assert [part.text for part in user.parts] == ["and?"]


def test_call_without_an_output_gets_one():
    [answer] = arranged([tool_call("ls", "{}", "a")])

    made_up = answer.output_of(answer.calls[0])

    assert made_up.tool_call_id == "a"
    assert made_up.stop_reason is StopReason.ABORTED


def test_output_without_a_call_is_told_as_text():
    [user] = arranged([output("nobody", "lost")])

    assert isinstance(user, UserBlock)
    assert "lost" in user.parts[0].text


def test_pieces_events_and_empty_texts_are_left_out():
    piece = OmniMessage(payload=p.PartialText(role="assistant", event_type="start"))
    event = OmniMessage(payload=p.RequestBegin())

    assert arranged([piece, event, user_text(" \n"), assistant_text("")]) == []


def test_images_stay_with_the_text_they_came_with():
    [user] = arranged([user_text("see"), image_url("data:image/png;base64,AA==")])

    assert [part.KIND for part in user.parts] == ["text", "image_url"]


def test_answer_begins_a_new_block_behind_outputs():
    first = [assistant_text("a"), tool_call("ls", "{}", "1"), output("1")]

    blocks = arranged([user_text("q"), *first, assistant_text("b")])

    assert [type(block) for block in blocks] == [
        UserBlock,
        AssistantBlock,
        AssistantBlock,
    ]


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        ('{"a": 1}', {"a": 1}),
        ("", {}),
        (" \n", {}),
        ('{"a": ', None),
        ("[1]", None),
        ('{"a": NaN}', None),
        ("[" * 5000, None),
        ('{"a": "\\ud800"}', {"a": "\ufffd"}),
        ('{"a": "\\ud83d\\ude00"}', {"a": "😀"}),
    ],
)
def test_arguments_are_an_object_or_none(arguments, found):
    call = tool_call("ls", arguments, "1").payload

    assert arguments_object(call) == found


def test_what_no_wire_carries_is_replaced():
    assert clean("a\x00b\ud800c") == "a␀b�c"
    assert wire_name("my tool/é") == "my_tool__"
    assert wire_name("") == "unnamed"


IDS = st.sampled_from(["a", "b", "c"])
MESSAGES = st.lists(
    st.one_of(
        st.builds(user_text, st.sampled_from(["q", ""])),
        st.builds(assistant_text, st.sampled_from(["a", " "])),
        st.builds(thinking, st.just("t")),
        st.builds(output, IDS),
        st.integers(0, 10**9).map(lambda n: tool_call("ls", "{}", f"id{n}")),
    )
)


@given(MESSAGES, st.data())
def test_any_history_pairs_every_call_with_one_output_right_behind(messages, data):
    ids = [m.payload.tool_call_id for m in messages if m.kind == "tool_call"]
    outputs = [output(i) for i in data.draw(st.permutations(sorted(set(ids))))]

    wire = chat_messages([*messages, *outputs], system="", is_vision=True)

    open_ids = []
    for message in wire:
        if message["role"] == "tool":
            assert message["tool_call_id"] == open_ids.pop(0)
            continue
        assert not open_ids
        open_ids = [call["id"] for call in message.get("tool_calls", ())]
    assert not open_ids
