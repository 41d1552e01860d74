"""Writes a request as an OpenAI-compatible chat completion."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from sessions_app.llm.client import ModelRequest
from sessions_app.llm.conversation import (
    NO_IMAGE,
    AssistantBlock,
    UserBlock,
    UserPart,
    arguments_object,
    arranged,
    clean,
    substitute,
    wire_name,
)
from sessions_app.llm.model_spec import ModelSpec
from traces_app.omnimessage import OmniMessage
from traces_app.omnimessage import payloads as p

Message = dict[str, Any]
# Names under which servers stream thoughts; sent back under the same name.
THINKING_FIELDS = ("reasoning_content", "reasoning")


def chat_request(request: ModelRequest, spec: ModelSpec) -> dict[str, Any]:
    """Return the body of the request, `stream` and all."""
    body: dict[str, Any] = {
        "model": spec.model_id,
        "messages": chat_messages(
            request.messages, system=request.system_prompt, is_vision=spec.is_vision
        ),
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    if request.tools:
        body["tools"] = [
            {
                "type": "function",
                "function": {
                    key: tool[key]
                    for key in ("name", "description", "parameters")
                    if key in tool
                },
            }
            for tool in request.tools
        ]
    max_tokens = request.max_tokens or spec.max_tokens
    if max_tokens:
        body[_max_tokens_name(spec)] = max_tokens
    if request.thinking_level not in (None, "none"):
        body["reasoning_effort"] = request.thinking_level
    return body


def _max_tokens_name(spec: ModelSpec) -> str:
    # OpenAI's reasoning models refuse the old name, other servers may not know the new.
    is_openai = spec.base_url is None or "//api.openai.com" in spec.base_url
    return "max_completion_tokens" if is_openai else "max_tokens"


def chat_messages(
    messages: Iterable[OmniMessage], *, system: str, is_vision: bool
) -> list[Message]:
    """Return the conversation as messages of the wire."""
    result: list[Message] = []
    if system.strip():
        result.append({"role": "system", "content": clean(system)})
    for block in arranged(messages):
        if isinstance(block, UserBlock):
            parts = [_user_part(part, is_vision=is_vision) for part in block.parts]
            _add_user(result, parts)
        else:
            result.extend(_answer(block))
            _add_user(result, _output_images(block, is_vision=is_vision))
    return result


def _add_user(messages: list[Message], parts: list[Message]) -> None:
    """Append to a user message that is last: many templates want roles to alternate."""
    if not parts:
        return
    last = messages[-1] if messages else {}
    if last.get("role") == "user":
        parts = [*_as_parts(last["content"]), *parts]
        messages.pop()
    is_plain = len(parts) == 1 and parts[0]["type"] == "text"
    messages.append(
        {"role": "user", "content": parts[0]["text"] if is_plain else parts}
    )


def _as_parts(content: Any) -> list[Message]:
    return [_text(content)] if isinstance(content, str) else content


def _text(text: str) -> Message:
    return {"type": "text", "text": clean(text)}


def _user_part(part: UserPart, *, is_vision: bool) -> Message:
    match part:
        case p.Text(text=text):
            return _text(text)
        case p.ImageUrl(image_url=url):
            return _image(url, is_vision=is_vision)
        case p.InlineData(data=data, mime_type=mime_type):
            return _image(f"data:{mime_type};base64,{data}", is_vision=is_vision)


def _image(url: str, *, is_vision: bool) -> Message:
    if not is_vision:
        return _text(NO_IMAGE)
    return {"type": "image_url", "image_url": {"url": clean(url)}}


def _answer(block: AssistantBlock) -> list[Message]:
    """Return the assistant's message and one tool message per call behind it."""
    texts = [part.text for part in block.parts if isinstance(part, p.Text)]
    calls = block.calls
    if not texts and not calls:
        return []  # thoughts alone are no message
    message: Message = {
        "role": "assistant",
        "content": clean("\n\n".join(texts)) if texts else None,
        **_thoughts(block),
    }
    if calls:
        message["tool_calls"] = [_call(call) for call in calls]
    return [message, *(_output(block.output_of(call)) for call in calls)]


def _thoughts(block: AssistantBlock) -> Message:
    """Return thoughts under the name the server gave them; others take none back."""
    result: Message = {}
    for part in block.parts:
        if not isinstance(part, p.Thinking) or not isinstance(part.fidelity, dict):
            continue
        name = part.fidelity.get("field")
        if name in THINKING_FIELDS:
            result[name] = result.get(name, "") + clean(part.thinking)
    return result


def _call(call: p.ToolCall) -> Message:
    message: Message = {
        "id": wire_name(call.tool_call_id),
        "type": "function",
        "function": {"name": wire_name(call.name), "arguments": _arguments(call)},
    }
    if isinstance(call.fidelity, dict):
        message.update(call.fidelity.get("chat", {}))
    return message


def _arguments(call: p.ToolCall) -> str:
    """Return the text the model wrote, as long as every server can read it."""
    found = arguments_object(call)
    if found is None:
        return json.dumps(substitute(call), ensure_ascii=False)
    is_plain = "\\ud" not in call.arguments.lower() and call.arguments.strip()
    return clean(call.arguments) if is_plain else json.dumps(found, ensure_ascii=False)


def _output(output: p.ToolCallOutput) -> Message:
    return {
        "role": "tool",
        "tool_call_id": wire_name(output.tool_call_id),
        "content": clean(output.output),
    }


def _output_images(block: AssistantBlock, *, is_vision: bool) -> list[Message]:
    """Return images of outputs as user parts: a tool message holds text only."""
    parts: list[Message] = []
    for call in block.calls:
        images = block.output_of(call).images
        if images and is_vision:
            parts.append(_text(f"[images of {call.name}, call {call.tool_call_id}]"))
            parts.extend(_image(url, is_vision=True) for url in images)
    return parts
