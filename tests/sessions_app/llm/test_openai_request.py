from __future__ import annotations

import json

import pytest

from sessions_app.llm.client import ModelRequest
from sessions_app.llm.model_spec import ModelSpec
from sessions_app.llm.openai_request import chat_messages, chat_request
from tests.fakes import Answer, Bytes, Call, Say, Think
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

PNG = "data:image/png;base64,AA=="
SPEC = ModelSpec(provider="openai", model_id="m", is_vision=True, context_window=1000)


def body_of(*messages, spec=SPEC, **fields):
    messages = messages or (user_text("hi"),)
    known = {"system_prompt": "", "messages": messages}
    return chat_request(ModelRequest(**{**known, **fields}), spec)


def wire(*messages, is_vision=True):
    return chat_messages(messages, system="", is_vision=is_vision)


def output(tool_call_id, text="out", **fields):
    return tool_call_output(tool_call_id, text, StopReason.COMPLETED, **fields)


def test_request_asks_for_a_stream_with_usage():
    body = body_of(system_prompt="Be kind.")

    assert body == {
        "model": "m",
        "messages": [
            {"role": "system", "content": "Be kind."},
            {"role": "user", "content": "hi"},
        ],
        "stream": True,
        "stream_options": {"include_usage": True},
    }


def test_tools_are_told_by_name_description_and_parameters_alone():
    tool = {"name": "ls", "description": "lists", "parameters": {"type": "object"}}

    body = body_of(tools=[{**tool, "permission": "rw", "timeoutMs": 1}])

    assert body["tools"] == [{"type": "function", "function": tool}]


@pytest.mark.parametrize("level", [None, "none"])
def test_thinking_is_left_to_the_provider_unless_a_level_is_set(level):
    assert "reasoning_effort" not in body_of(thinking_level=level)


@pytest.mark.parametrize("level", ["low", "medium", "high", "xhigh", "max"])
def test_thinking_level_is_the_reasoning_effort(level):
    assert body_of(thinking_level=level)["reasoning_effort"] == level


def test_max_tokens_has_the_name_the_server_knows():
    local = ModelSpec(
        provider="local",
        model_id="m",
        is_vision=False,
        context_window=1000,
        base_url="http://127.0.0.1:8080/v1",
        max_tokens=99,
    )

    assert body_of(max_tokens=50)["max_completion_tokens"] == 50
    assert body_of(spec=local)["max_tokens"] == 99
    assert body_of(spec=local, max_tokens=50)["max_tokens"] == 50


def test_answer_with_calls_is_followed_by_their_outputs():
    history = [
        assistant_text("I look."),
        tool_call("ls", '{"a":  1}', "1"),
        tool_call("ls", "{}", "2"),
        output("2", "two"),
        output("1", "one"),
    ]

    answer, one, two = wire(*history)

    assert answer["content"] == "I look."
    assert answer["tool_calls"][0] == {
        "id": "1",
        "type": "function",
        "function": {"name": "ls", "arguments": '{"a":  1}'},
    }
    assert one == {"role": "tool", "tool_call_id": "1", "content": "one"}
    assert two == {"role": "tool", "tool_call_id": "2", "content": "two"}


def test_answer_of_calls_alone_has_no_content():
    answer, _ = wire(tool_call("ls", "", "1"), output("1"))

    assert answer["content"] is None
    assert answer["tool_calls"][0]["function"]["arguments"] == "{}"


@pytest.mark.parametrize("arguments", ['{"cmd": "echo', "[1]", "nonsense", "{} {}"])
def test_arguments_that_are_no_object_go_back_inside_one(arguments):
    answer, _ = wire(tool_call("ls", arguments, "1"), output("1"))

    sent = json.loads(answer["tool_calls"][0]["function"]["arguments"])
    assert sent == {"unparsable_arguments": arguments}


def test_lone_surrogate_in_arguments_goes_back_readable():
    answer, _ = wire(tool_call("ls", '{"a": "\\ud800"}', "1"), output("1"))

    assert answer["tool_calls"][0]["function"]["arguments"] == '{"a": "\ufffd"}'


def test_images_of_the_user_are_parts():
    [message] = wire(user_text("see"), image_url(PNG))

    assert message["content"] == [
        {"type": "text", "text": "see"},
        {"type": "image_url", "image_url": {"url": PNG}},
    ]


def test_images_of_outputs_follow_all_outputs_as_user_parts():
    calls = [tool_call("read_image", "{}", "1"), tool_call("ls", "{}", "2")]
    outputs = [output("1", images=(PNG,)), output("2")]

    roles = [
        (m["role"], m["content"]) for m in wire(*calls, *outputs, user_text("and?"))
    ]

    assert [role for role, _ in roles] == ["assistant", "tool", "tool", "user"]
    label, image, question = roles[-1][1]
    assert "read_image" in label["text"]
    assert image["image_url"]["url"] == PNG
    assert question["text"] == "and?"


def test_model_without_eyes_gets_no_images():
    history = [user_text("see"), image_url(PNG), tool_call("read_image", "{}", "1")]

    messages = wire(*history, output("1", images=(PNG,)), is_vision=False)

    assert "image_url" not in json.dumps(messages)
    assert "left out" in messages[0]["content"][1]["text"]


def test_inline_image_of_the_user_is_a_part():
    inline = OmniMessage(
        payload=p.InlineData(role="user", data="AA==", mime_type="image/png")
    )

    [message] = wire(inline)

    assert message["content"][0]["image_url"]["url"] == PNG


def test_messages_of_the_user_are_one_so_that_roles_alternate():
    [message] = wire(user_text("a"), user_text("b", synthetic="retry"))

    assert [part["text"] for part in message["content"]] == ["a", "b"]


def test_thoughts_go_back_under_the_name_they_came_with_and_others_do_not():
    own = thinking("mine", fidelity={"field": "reasoning_content"})
    foreign = thinking("signed", fidelity={"signature": "s"})

    [answer] = wire(own, foreign, thinking("plain"), assistant_text("a"))

    assert answer == {
        "role": "assistant",
        "content": "a",
        "reasoning_content": "mine",
    }


def test_thoughts_alone_are_no_message():
    assert wire(thinking("hm")) == []


async def test_signature_of_a_call_goes_back_unchanged(chat):
    extra = {"extra_content": {"google": {"thought_signature": "s"}}}
    call = tool_call("ls", "{}", "1", fidelity={"chat": extra})
    chat.server.add(Answer(Say("ok")))

    await chat.ask(user_text("q"), call, output("1"))

    sent = chat.server.requests[0].body["messages"][1]["tool_calls"][0]
    assert sent["extra_content"] == extra["extra_content"]


async def test_what_was_sent_stays_a_prefix_of_what_is_sent_next(chat):
    history = [user_text("q"), image_url(PNG)]
    answers = [
        Answer(Think("hm"), Say("I look."), Call("ls", {"a": 1}), Call("ls", '{"b":')),
        Answer(Call("read_image", {"source": "ü.png"})),
        Answer(Say("Done.")),
        Answer(Say("Bye.")),
    ]
    chat.server.add(*answers)

    for _ in answers:
        items = [
            m for m in await chat.ask(*history, system_prompt="s") if hasattr(m, "kind")
        ]
        produced = [m for m in items if not m.is_partial]
        ids = [m.payload.tool_call_id for m in produced if m.kind == "tool_call"]
        outputs = [output(i, "a\x00\ud800", images=(PNG,)) for i in ids]
        history += [*produced, *(outputs or [user_text("go on")])]

    sent = [json.dumps(r.body["messages"])[:-1] for r in chat.server.requests]
    assert len(sent) == 4
    for earlier, later in zip(sent, sent[1:], strict=False):
        assert later.startswith(earlier)


async def test_long_history_reaches_the_server_whole(chat):
    chat.server.add(Bytes())
    history = [user_text("q")]
    for index in range(200):
        history += [tool_call("ls", "{}", str(index)), output(str(index), "x" * 500)]

    with pytest.raises(Exception, match="ended without"):
        await chat.ask(*history)

    assert len(chat.server.requests[0].body["messages"]) == 401
