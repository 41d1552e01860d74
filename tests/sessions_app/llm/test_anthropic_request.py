from __future__ import annotations

import json

import pytest

from sessions_app.llm.anthropic_request import messages_request
from sessions_app.llm.client import ModelRequest
from sessions_app.llm.model_spec import ModelSpec
from tests.fakes import Answer, Call, Say, Think
from traces_app.omnimessage import (
    StopReason,
    assistant_text,
    image_url,
    thinking,
    tool_call,
    tool_call_output,
    user_text,
)

PNG = "data:image/png;base64,AA=="
TOOL = {"name": "ls", "description": "lists", "parameters": {"type": "object"}}
SPEC = ModelSpec(
    provider="anthropic",
    model_id="m",
    is_vision=True,
    context_window=1000,
    protocol="anthropic",
)


def body_of(*messages, spec=SPEC, **fields):
    messages = messages or (user_text("hi"),)
    known = {"system_prompt": "", "messages": messages}
    return messages_request(ModelRequest(**{**known, **fields}), spec)


def plain(value):
    """Return the value without the marks for the cache."""
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items() if k != "cache_control"}
    return [plain(item) for item in value] if isinstance(value, list) else value


def wire(*messages, **fields):
    return plain(body_of(*messages, **fields)["messages"])


def output(tool_call_id, text="out", reason=StopReason.COMPLETED, **fields):
    return tool_call_output(tool_call_id, text, reason, **fields)


def test_request_holds_model_limit_and_messages_and_no_empty_lists():
    assert plain(body_of()) == {
        "model": "m",
        "max_tokens": 32_000,
        "messages": [{"role": "user", "content": [{"type": "text", "text": "hi"}]}],
        "stream": True,
    }


def test_tools_and_system_prompt_are_told():
    body = plain(body_of(system_prompt="Be kind.", tools=[{**TOOL, "permission": "r"}]))

    assert body["system"] == [{"type": "text", "text": "Be kind."}]
    assert body["tools"] == [
        {"name": "ls", "description": "lists", "input_schema": {"type": "object"}}
    ]


def test_max_tokens_of_the_request_wins_over_that_of_the_model():
    spec = ModelSpec(
        provider="a", model_id="m", is_vision=True, context_window=1, max_tokens=99
    )

    assert body_of(spec=spec)["max_tokens"] == 99
    assert body_of(spec=spec, max_tokens=50)["max_tokens"] == 50


@pytest.mark.parametrize("level", [None, "none"])
def test_thinking_is_left_out_without_a_level(level):
    assert "thinking" not in body_of(thinking_level=level)


@pytest.mark.parametrize("max_tokens", [None, 1500, 64_000])
def test_budgets_grow_with_the_level_and_fit_into_max_tokens(max_tokens):
    levels = ["low", "medium", "high", "xhigh", "max"]

    bodies = [body_of(thinking_level=x, max_tokens=max_tokens) for x in levels]

    budgets = [body["thinking"]["budget_tokens"] for body in bodies]
    assert budgets == sorted(budgets)
    assert all(
        1024 <= b < body["max_tokens"] for b, body in zip(budgets, bodies, strict=True)
    )


def test_answer_too_short_for_a_thought_is_asked_for_without():
    assert "thinking" not in body_of(thinking_level="max", max_tokens=1000)


def test_calls_outputs_and_failures_are_blocks():
    history = [
        assistant_text("I look."),
        tool_call("ls", '{"a": 1}', "1"),
        tool_call("rm", "{}", "2"),
        output("1"),
        output("2", "no", StopReason.FAILED),
    ]

    _, answer, results = wire(user_text("q"), *history)

    assert answer["content"] == [
        {"type": "text", "text": "I look."},
        {"type": "tool_use", "id": "1", "name": "ls", "input": {"a": 1}},
        {"type": "tool_use", "id": "2", "name": "rm", "input": {}},
    ]
    assert results["content"] == [
        {
            "type": "tool_result",
            "tool_use_id": "1",
            "content": [{"type": "text", "text": "out"}],
        },
        {
            "type": "tool_result",
            "tool_use_id": "2",
            "content": [{"type": "text", "text": "no"}],
            "is_error": True,
        },
    ]


def test_images_of_outputs_stand_in_them():
    call = tool_call("read_image", "{}", "1")

    *_, results = wire(user_text("q"), call, output("1", images=(PNG,)))

    assert results["content"][0]["content"][1] == {
        "type": "image",
        "source": {"type": "base64", "media_type": "image/png", "data": "AA=="},
    }


def test_image_may_be_an_address():
    [message] = wire(image_url("https://example.org/a.png"))

    source = message["content"][0]["source"]
    assert source == {"type": "url", "url": "https://example.org/a.png"}


def test_model_without_eyes_gets_no_images():
    blind = ModelSpec(provider="a", model_id="m", is_vision=False, context_window=1)
    call = tool_call("read_image", "{}", "1")

    messages = wire(image_url(PNG), call, output("1", images=(PNG,)), spec=blind)

    assert "base64" not in json.dumps(messages)


@pytest.mark.parametrize("arguments", ['{"cmd": "echo', "[1]", "nonsense"])
def test_arguments_that_are_no_object_go_back_inside_one(arguments):
    _, answer, _ = wire(user_text("q"), tool_call("ls", arguments, "1"), output("1"))

    assert answer["content"][0]["input"] == {"unparsable_arguments": arguments}


def test_signed_and_redacted_thoughts_go_back_unchanged_and_others_do_not():
    history = [
        thinking("mine", fidelity={"signature": "s"}),
        thinking("", fidelity={"redacted_thinking": "xyz"}),
        thinking("foreign", fidelity={"field": "reasoning_content"}),
        assistant_text("a"),
    ]

    _, answer = wire(user_text("q"), *history)

    assert answer["content"] == [
        {"type": "thinking", "thinking": "mine", "signature": "s"},
        {"type": "redacted_thinking", "data": "xyz"},
        {"type": "text", "text": "a"},
    ]


def test_thinking_rests_behind_calls_that_were_made_without_it():
    call, done = tool_call("ls", "{}", "1"), output("1")
    signed = thinking("t", fidelity={"signature": "s"})
    level = {"thinking_level": "low"}

    assert "thinking" not in body_of(user_text("q"), call, done, **level)
    assert "thinking" in body_of(user_text("q"), signed, call, done, **level)
    over = [assistant_text("a"), user_text("r")]
    assert "thinking" in body_of(user_text("q"), call, done, *over, **level)


def test_history_with_calls_names_their_tools_when_none_are_offered():
    body = body_of(user_text("q"), tool_call("ls", "{}", "1"), output("1"))

    assert body["tools"] == [{"name": "ls", "input_schema": {"type": "object"}}]
    assert body["tool_choice"] == {"type": "none"}


def test_conversation_begins_with_the_user():
    first, second = wire(assistant_text("a"))

    assert (first["role"], second["role"]) == ("user", "assistant")


def test_ends_of_this_request_and_of_the_last_one_are_marked_for_the_cache():
    call, done = tool_call("ls", "{}", "1"), output("1")

    body = body_of(user_text("q"), call, done, system_prompt="s")

    question, answer, results = body["messages"]
    assert "cache_control" in body["system"][0]
    assert "cache_control" in question["content"][-1]
    assert "cache_control" in results["content"][-1]
    assert "cache_control" not in json.dumps(answer)


async def test_what_was_sent_stays_a_prefix_of_what_is_sent_next(anthropic):
    history = [user_text("q"), image_url(PNG)]
    answers = [
        Answer(Think("hm"), Say("I look."), Call("ls", {"a": 1}), Call("ls", '{"b":')),
        Answer(Call("read_image", {"source": "ü.png"})),
        Answer(Say("Done.")),
        Answer(Say("Bye.")),
    ]
    anthropic.server.add(*answers)

    for _ in answers:
        items = await anthropic.ask(*history, system_prompt="s")
        produced = [m for m in items[:-1] if not m.is_partial]
        ids = [m.payload.tool_call_id for m in produced if m.kind == "tool_call"]
        outputs = [output(i, "a\x00\ud800", images=(PNG,)) for i in ids]
        history += [*produced, *(outputs or [user_text("go on")])]

    sent = [plain(request.body["messages"]) for request in anthropic.server.requests]
    texts = [json.dumps(messages)[:-1] for messages in sent]
    assert len(texts) == 4
    for earlier, later in zip(texts, texts[1:], strict=False):
        assert later.startswith(earlier)
