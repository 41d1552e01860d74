from __future__ import annotations

import pytest

from sessions_app.llm.client import (
    CredentialsError,
    InvalidRequestError,
    LLMError,
    MalformedStreamError,
)
from tests.fake_wires import CHAT_DONE, chat_call, chat_chunk, chat_data, chat_usage
from tests.fakes import Answer, Bytes, Cut, Pause, Say, Think
from traces_app.omnimessage.payloads import Usage

TOOL_CALLS = chat_chunk(finish_reason="tool_calls")
STOP = chat_chunk(finish_reason="stop")


def begin(index, name, **fields):
    """Return the first fragment of a call as llama.cpp writes it."""
    function = {"name": name, "arguments": fields.pop("arguments", "")}
    fields = {"id": f"id-{index}", **fields}
    return chat_call(index, "", type="function", **{**fields, "function": function})


async def test_stream_as_llama_cpp_writes_it(chat):
    head = chat_chunk({"role": "assistant", "content": None})
    bits = ['"', "cmd", '":', ' "', "ls", " -", "l", '"}']
    call = [begin(0, "exec_command", id="BrvCjwdeL1BqmDvT", arguments="{")]
    call += [chat_call(0, bit) for bit in bits]
    usage = chat_usage(985, 974, 25)
    chat.server.add(Bytes(head, *call, TOOL_CALLS, usage, CHAT_DONE))

    *_, complete, usage = await chat.ask()

    assert complete.payload.tool_call_id == "BrvCjwdeL1BqmDvT"
    assert complete.payload.name == "exec_command"
    assert complete.payload.arguments == '{"cmd": "ls -l"}'
    assert usage == Usage(cache_read=974, cache_write=11, output=25, total=1010)


async def test_stream_without_done_ends_with_its_connection(chat):
    chat.server.add(Bytes(chat_chunk({"content": "hi"}), STOP, chat_usage(5, 0, 1)))

    *_, text, usage = await chat.ask()

    assert text.payload.text == "hi"
    assert usage.total == 6


async def test_server_that_keeps_a_whole_stream_open_is_not_waited_for(chat):
    whole = [chat_chunk({"content": "hi"}), STOP, chat_usage(5, 0, 1)]
    chat.server.add(Bytes(*whole, Pause(30)))

    *_, text, usage = await chat.ask()

    assert text.payload.text == "hi"
    assert usage.total == 6
    assert chat.server.requests[0].is_gone.wait(10)


async def test_connection_that_drops_behind_a_whole_answer_does_no_harm(chat):
    chat.server.add(Bytes(chat_chunk({"content": "hi"}), STOP, Cut()))

    [text] = await chat.answer()

    assert text.text == "hi"


async def test_answer_without_usage_has_none(chat):
    chat.server.add(Bytes(chat_chunk({"content": "hi"}), STOP, CHAT_DONE))

    items = await chat.ask()

    assert not any(isinstance(item, Usage) for item in items)


async def test_thoughts_come_under_either_name_and_once(chat):
    twice = {"reasoning": "hm", "reasoning_content": "hm"}
    chat.server.add(Bytes(chat_chunk(twice), chat_chunk({"content": "a"}), STOP))

    thought, text = await chat.answer()

    assert thought.thinking == "hm"
    assert thought.fidelity == {"field": "reasoning_content"}
    assert text.text == "a"


async def test_content_may_come_before_and_behind_a_call(chat):
    call = begin(0, "ls", arguments="{}")
    before, behind = chat_chunk({"content": "a"}), chat_chunk({"content": "b"})
    chat.server.add(Bytes(before, call, behind, TOOL_CALLS))

    kinds = [payload.KIND for payload in await chat.answer()]

    assert kinds == ["text", "text", "tool_call"]


async def test_empty_contents_leave_no_text(chat):
    empty = [chat_chunk({"content": ""}), chat_chunk({"content": None})]
    chat.server.add(Bytes(*empty, begin(0, "ls", arguments="{}"), TOOL_CALLS))

    assert [payload.KIND for payload in await chat.answer()] == ["tool_call"]


async def test_whole_message_in_place_of_deltas_is_read(chat):
    whole = {"index": 0, "message": {"content": "all"}, "finish_reason": "stop"}
    chat.server.add(Bytes(chat_data({"choices": [whole]}), CHAT_DONE))

    [text] = await chat.answer()

    assert text.text == "all"


async def test_content_in_parts_is_joined(chat):
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    chat.server.add(Bytes(chat_chunk({"content": parts}), STOP))

    [text] = await chat.answer()

    assert text.text == "ab"


async def test_text_cut_by_length_stands(chat):
    chat.server.add(Answer(Say("as far as it"), finish="length"))

    [text] = await chat.answer()

    assert text.text == "as far as it"


async def test_answer_cut_while_thinking_is_malformed(chat):
    chat.server.add(Answer(Think("a long thought"), finish="length"))

    with pytest.raises(MalformedStreamError, match="before any text"):
        await chat.ask()


async def test_empty_answer_is_whole(chat):
    chat.server.add(Answer())

    assert await chat.answer() == []


async def test_refused_answer_is_not_asked_for_again(chat):
    chat.server.add(Answer(finish="content_filter"))

    with pytest.raises(InvalidRequestError, match="refuses"):
        await chat.ask()


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        (
            {"code": 500, "message": "boom", "type": "server_error"},
            LLMError,
            "500: boom",
        ),
        ({"code": 400, "message": "no"}, InvalidRequestError, "400: no"),
        ({"type": "authentication_error", "message": "who"}, CredentialsError, "who"),
        ({"code": "rate_limit_exceeded", "message": "slow"}, LLMError, "slow"),
        ("overloaded", LLMError, "overloaded"),
    ],
)
async def test_error_inside_the_stream_is_told(chat, error, kind, words):
    chat.server.add(Bytes(chat_chunk({"content": "a"}), chat_data({"error": error})))

    with pytest.raises(LLMError) as caught:
        await chat.ask()

    assert type(caught.value) is kind
    assert words in str(caught.value)


async def test_finish_reason_error_is_a_failure(chat):
    chat.server.add(Answer(Say("a"), finish="error"))

    with pytest.raises(LLMError, match="broke off"):
        await chat.ask()


async def test_cached_tokens_of_other_servers_are_read(chat):
    usage = {"prompt_tokens": 9, "completion_tokens": 1, "prompt_cache_hit_tokens": 4}
    last = chat_data({"choices": [], "usage": usage})
    chat.server.add(Bytes(chat_chunk({"content": "a"}), STOP, last, CHAT_DONE))

    usage = (await chat.ask())[-1]

    assert usage == Usage(cache_read=4, cache_write=5, output=1, total=10)
