from __future__ import annotations

import pytest

from sessions_app.llm.client import (
    CredentialsError,
    InvalidRequestError,
    LLMError,
    MalformedStreamError,
)
from tests.fake_wires import (
    anthropic_block,
    anthropic_end,
    anthropic_event,
    anthropic_start,
)
from tests.fakes import Answer, Bytes, Call, Cut, Pause, Say, Think
from traces_app.omnimessage import user_text
from traces_app.omnimessage.payloads import Usage

START = anthropic_start(10, 0)


def stream(*blocks, stop_reason="tool_use"):
    """Return a stream of content blocks that ends as it should."""
    events = [event for block in blocks for event in block]
    return Bytes(START, *events, *anthropic_end(stop_reason, 5))


def call_block(*deltas, index=0, name="ls", **start):
    block = {"type": "tool_use", "id": f"toolu_{index}", "name": name, "input": {}}
    bits = [{"type": "input_json_delta", "partial_json": bit} for bit in deltas]
    return anthropic_block(index, {**block, **start}, *bits)


async def test_thought_keeps_its_signature(anthropic):
    anthropic.server.add(Answer(Think("let me see", signature="abc"), Say("ok")))

    thought, text = await anthropic.answer()

    assert thought.thinking == "let me see"
    assert thought.fidelity == {"signature": "abc"}
    assert text.text == "ok"


async def test_signature_may_come_without_words_and_in_pieces(anthropic):
    bits = [{"type": "signature_delta", "signature": bit} for bit in ("ab", "c")]
    block = anthropic_block(0, {"type": "thinking", "thinking": ""}, *bits)
    anthropic.server.add(stream(block, stop_reason="end_turn"))

    [thought] = await anthropic.answer()

    assert (thought.thinking, thought.fidelity) == ("", {"signature": "abc"})


async def test_redacted_thought_is_kept(anthropic):
    block = anthropic_block(0, {"type": "redacted_thinking", "data": "xyz"})
    anthropic.server.add(stream(block, stop_reason="end_turn"))

    [thought] = await anthropic.answer()

    assert (thought.thinking, thought.fidelity) == ("", {"redacted_thinking": "xyz"})


async def test_thoughts_go_back_as_they_came(anthropic):
    redacted = anthropic_block(1, {"type": "redacted_thinking", "data": "xyz"})
    signed = anthropic_block(
        0,
        {"type": "thinking", "thinking": "", "signature": ""},
        {"type": "thinking_delta", "thinking": "hm\n\n ok "},
        {"type": "signature_delta", "signature": "sig=="},
    )
    anthropic.server.add(stream(signed, redacted, call_block("{}", index=2)))
    anthropic.server.add(Answer(Say("done")))

    items = await anthropic.ask()
    produced = [m for m in items[:-1] if not m.is_partial]
    await anthropic.ask(user_text("hi"), *produced)

    answer = anthropic.server.requests[1].body["messages"][1]
    assert answer["content"][:2] == [
        {"type": "thinking", "thinking": "hm\n\n ok ", "signature": "sig=="},
        {"type": "redacted_thinking", "data": "xyz"},
    ]


async def test_empty_text_leaves_no_message(anthropic):
    empty = anthropic_block(0, {"type": "text", "text": ""})
    anthropic.server.add(stream(empty, call_block("{}", index=1)))

    assert [payload.KIND for payload in await anthropic.answer()] == ["tool_call"]


async def test_text_and_input_may_come_whole_with_their_start(anthropic):
    text = anthropic_block(0, {"type": "text", "text": "all at once"})
    call = call_block(index=1, input={"a": 1})
    anthropic.server.add(stream(text, call))

    said, called = await anthropic.answer()

    assert said.text == "all at once"
    assert called.arguments == '{"a": 1}'


async def test_call_without_input_has_an_empty_object(anthropic):
    anthropic.server.add(stream(call_block("")))

    [call] = await anthropic.answer()

    assert call.arguments == "{}"


async def test_call_is_complete_when_its_block_stops(anthropic):
    anthropic.server.add(Answer(Call("one", {"a": 1}), Cut()))
    items = []

    with pytest.raises(MalformedStreamError):
        await anthropic.ask(into=items)

    assert [m.payload.name for m in items if m.kind == "tool_call"] == ["one"]


async def test_call_whose_block_did_not_stop_was_never_a_call(anthropic):
    *events, _ = call_block('{"a": 1}')
    anthropic.server.add(Bytes(START, *events, Cut()))
    items = []

    with pytest.raises(MalformedStreamError):
        await anthropic.ask(into=items)

    assert not [m for m in items if m.kind == "tool_call"]


@pytest.mark.parametrize("arguments", ['{"cmd": "echo', ""])
async def test_call_cut_by_max_tokens_was_never_a_call(anthropic, arguments):
    cut = call_block(arguments, name="exec_command")
    anthropic.server.add(stream(cut, stop_reason="max_tokens"))
    items = []

    with pytest.raises(MalformedStreamError, match="arguments of exec_command"):
        await anthropic.ask(into=items)

    assert not [m for m in items if not isinstance(m, Usage) and m.kind == "tool_call"]
    assert isinstance(items[-1], Usage)


async def test_broken_arguments_of_a_whole_answer_are_handed_on_as_written(anthropic):
    first, last = call_block('{"a": '), call_block("[1]", index=1)
    anthropic.server.add(stream(first, last))

    calls = await anthropic.answer()

    assert [call.arguments for call in calls] == ['{"a": ', "[1]"]


async def test_missing_id_is_made_up(anthropic):
    anthropic.server.add(stream(call_block("{}", id="")))

    [call] = await anthropic.answer()

    assert call.tool_call_id.startswith("call_")


async def test_call_without_a_name_is_malformed(anthropic):
    anthropic.server.add(stream(call_block("{}", name="")))

    with pytest.raises(MalformedStreamError, match="without a name"):
        await anthropic.ask()


async def test_text_cut_by_max_tokens_stands(anthropic):
    anthropic.server.add(Answer(Say("as far as it"), finish="max_tokens"))

    [text] = await anthropic.answer()

    assert text.text == "as far as it"


async def test_answer_cut_while_thinking_is_malformed(anthropic):
    anthropic.server.add(Answer(Think("a long thought"), finish="max_tokens"))

    with pytest.raises(MalformedStreamError, match="before any text"):
        await anthropic.ask()


async def test_refused_answer_is_not_asked_for_again(anthropic):
    anthropic.server.add(Answer(finish="refusal"))

    with pytest.raises(InvalidRequestError, match="refuses"):
        await anthropic.ask()


async def test_stream_without_message_stop_is_malformed(anthropic):
    block = anthropic_block(0, {"type": "text", "text": "hi"})
    delta, _ = anthropic_end("end_turn", 5)
    anthropic.server.add(Bytes(START, *block, delta))

    with pytest.raises(MalformedStreamError, match="without message_stop"):
        await anthropic.ask()


async def test_server_that_keeps_a_whole_stream_open_is_not_waited_for(anthropic):
    block = anthropic_block(0, {"type": "text", "text": "hi"})
    end = anthropic_end("end_turn", 5)
    anthropic.server.add(Bytes(START, *block, *end, Pause(30)))

    [text] = await anthropic.answer()

    assert text.text == "hi"


async def test_kinds_that_are_not_known_are_passed_over(anthropic):
    new_event = anthropic_event("content_glow", index=0)
    new_block = anthropic_block(0, {"type": "hologram"}, {"type": "hologram_delta"})
    anthropic.server.add(Answer(new_event, *new_block, Say("fine")))

    [text] = await anthropic.answer()

    assert text.text == "fine"


async def test_usage_counts_what_is_written_to_the_cache(anthropic):
    usage = {
        "input_tokens": 3,
        "cache_read_input_tokens": 50,
        "cache_creation_input_tokens": 7,
        "output_tokens": 1,
    }
    start = anthropic_event("message_start", message={"usage": usage})
    block = anthropic_block(0, {"type": "text", "text": "hi"})
    anthropic.server.add(Bytes(start, *block, *anthropic_end("end_turn", 5)))

    found = (await anthropic.ask())[-1]

    assert found == Usage(cache_read=50, cache_write=10, output=5, total=65)


@pytest.mark.parametrize(
    ("kind", "error", "words"),
    [
        ("overloaded_error", LLMError, "529: Overloaded"),
        ("api_error", LLMError, "500: Overloaded"),
        ("rate_limit_error", LLMError, "429: Overloaded"),
        ("authentication_error", CredentialsError, "401: Overloaded"),
        ("invalid_request_error", InvalidRequestError, "400: Overloaded"),
    ],
)
async def test_error_inside_the_stream_is_told(anthropic, kind, error, words):
    said = {"type": kind, "message": "Overloaded"}
    anthropic.server.add(Answer(Say("a"), anthropic_event("error", error=said)))

    with pytest.raises(LLMError) as caught:
        await anthropic.ask()

    assert type(caught.value) is error
    assert words in str(caught.value)
