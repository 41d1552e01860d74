from __future__ import annotations

import pytest

from sessions_app.llm.client import (
    MalformedStreamError,
)
from tests.fake_wires import chat_call, chat_chunk
from tests.fakes import Answer, Bytes, Call, Cut, Say
from traces_app.omnimessage.payloads import Usage

TOOL_CALLS = chat_chunk(finish_reason="tool_calls")
STOP = chat_chunk(finish_reason="stop")


def begin(index, name, **fields):
    """Return the first fragment of a call as llama.cpp writes it."""
    function = {"name": name, "arguments": fields.pop("arguments", "")}
    fields = {"id": f"id-{index}", **fields}
    return chat_call(index, "", type="function", **{**fields, "function": function})


async def test_call_is_complete_when_the_next_one_begins(chat):
    first = begin(0, "one", arguments='{"a": 1}')
    chat.server.add(Bytes(first, begin(1, "two"), chat_call(1, '{"b"'), Cut()))
    items = []

    with pytest.raises(MalformedStreamError):
        await chat.ask(into=items)

    assert [m.payload.name for m in items if m.kind == "tool_call"] == ["one"]


async def test_last_call_of_a_cut_stream_was_never_a_call(chat):
    chat.server.add(Answer(Call("ls", {"a": 1}), Cut()))
    items = []

    with pytest.raises(MalformedStreamError):
        await chat.ask(into=items)

    assert not [m for m in items if m.kind == "tool_call"]


async def test_calls_interleaved_by_index_are_put_together_in_order(chat):
    chat.server.add(
        Bytes(
            begin(0, "one", arguments="{"),
            begin(1, "two", arguments="{"),
            chat_call(0, '"a":1}'),
            chat_call(1, '"b":2}'),
            TOOL_CALLS,
        )
    )

    calls = await chat.answer()

    assert [(c.name, c.arguments) for c in calls] == [
        ("one", '{"a":1}'),
        ("two", '{"b":2}'),
    ]


async def test_same_id_twice_in_one_answer_becomes_two_calls(chat):
    one = begin(0, "one", id="x", arguments="{}")
    two = begin(1, "two", id="x", arguments="{}")
    chat.server.add(Bytes(one, two, TOOL_CALLS))

    items = await chat.ask()

    starts = [m.payload for m in items if m.kind == "partial_tool_call"]
    calls = [m.payload for m in items if m.kind == "tool_call"]
    assert [call.name for call in calls] == ["one", "two"]
    assert calls[0].tool_call_id == "x" != calls[1].tool_call_id
    assert {(s.tool_call_id, s.name) for s in starts} == {
        (call.tool_call_id, call.name) for call in calls
    }


@pytest.mark.parametrize("wire_id", ["", None])
async def test_missing_ids_are_made_up(chat, wire_id):
    calls = [begin(i, "ls", id=wire_id, arguments="{}") for i in range(2)]
    chat.server.add(Bytes(*calls, TOOL_CALLS))

    one, two = await chat.answer()

    assert one.tool_call_id.startswith("call_")
    assert one.tool_call_id != two.tool_call_id


async def test_server_that_numbers_no_calls_makes_two_by_their_ids(chat):
    chat.server.add(
        Bytes(
            begin(0, "one", id="a"),
            chat_call(0, '{"a": 1}'),
            begin(0, "two", id="b"),
            chat_call(0, '{"b": 2}'),
            TOOL_CALLS,
        )
    )

    calls = await chat.answer()

    assert [(c.tool_call_id, c.arguments) for c in calls] == [
        ("a", '{"a": 1}'),
        ("b", '{"b": 2}'),
    ]


async def test_calls_with_neither_index_nor_id_are_told_apart_by_their_names(chat):
    one = begin(None, "one", id=None, arguments="{}")
    two = begin(None, "two", id=None, arguments="{}")
    chat.server.add(Bytes(one, two, TOOL_CALLS))

    assert [call.name for call in await chat.answer()] == ["one", "two"]


async def test_id_and_name_repeated_in_every_fragment_make_one_call(chat):
    fragments = [begin(0, "ls", id="a", arguments=bit) for bit in ('{"a"', ": 1}")]
    chat.server.add(Bytes(*fragments, TOOL_CALLS))

    [call] = await chat.answer()

    assert (call.name, call.arguments) == ("ls", '{"a": 1}')


async def test_name_may_come_behind_the_first_arguments(chat):
    late = begin(0, "ls", id="x", arguments="1}")
    chat.server.add(Bytes(chat_call(0, '{"a": ', id="x"), late, TOOL_CALLS))

    items = await chat.ask()

    pieces = [m.payload for m in items if m.kind == "partial_tool_call"]
    assert pieces[0].name == "ls"
    assert "".join(piece.arguments for piece in pieces) == '{"a": 1}'


async def test_call_without_a_name_is_malformed(chat):
    chat.server.add(Bytes(chat_call(0, "{}", id="x"), TOOL_CALLS))

    with pytest.raises(MalformedStreamError, match="without a name"):
        await chat.ask()


async def test_call_without_arguments_has_an_empty_object(chat):
    chat.server.add(Answer(Call("ls", "")))

    [call] = await chat.answer()

    assert call.arguments == "{}"


async def test_broken_arguments_of_a_whole_answer_are_handed_on_as_written(chat):
    chat.server.add(Answer(Call("one", '{"a": '), Call("two", {"b": 2})))

    calls = await chat.answer()

    assert [call.arguments for call in calls] == ['{"a": ', '{"b": 2}']


async def test_signature_of_a_call_is_kept(chat):
    signed = begin(0, "ls", arguments="{}", extra_content={"google": {"sig": "s"}})
    chat.server.add(Bytes(signed, TOOL_CALLS))

    [call] = await chat.answer()

    assert call.fidelity == {"chat": {"extra_content": {"google": {"sig": "s"}}}}


async def test_call_cut_by_length_was_never_a_call_and_the_answer_is_malformed(chat):
    whole, cut = Call("one", {"a": 1}), Call("exec_command", '{"cmd": "echo')
    chat.server.add(Answer(Say("so"), whole, cut, finish="length"))
    items = []

    with pytest.raises(MalformedStreamError) as caught:
        await chat.ask(into=items)

    assert "in the arguments of exec_command" in str(caught.value)
    assert "max_tokens" in str(caught.value)
    complete = [m for m in items if not isinstance(m, Usage) and not m.is_partial]
    assert [m.kind for m in complete] == ["text", "tool_call"]
    assert items[-1].total == 120
