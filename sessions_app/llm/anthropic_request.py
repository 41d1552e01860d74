"""Writes a request for Anthropic's Messages API."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from sessions_app.llm.client import ModelRequest
from sessions_app.llm.conversation import (
    NO_IMAGE,
    AssistantBlock,
    AssistantPart,
    UserBlock,
    UserPart,
    arguments_object,
    arranged,
    clean,
    substitute,
    wire_name,
)
from sessions_app.llm.model_spec import ModelSpec
from traces_app.omnimessage import StopReason
from traces_app.omnimessage import payloads as p

Content = dict[str, Any]
# The API wants a number; this one every model since Claude 4 can write.
DEFAULT_MAX_TOKENS = 32_000
MIN_BUDGET = 1024  # the API takes no smaller one
# Share of max_tokens that may be thought; the rest is for the answer.
_BUDGETS = {"low": 1 / 16, "medium": 1 / 4, "high": 1 / 2, "xhigh": 5 / 8, "max": 3 / 4}
_DATA_URL = re.compile(r"data:([\w.+/-]+);base64,(.*)", re.DOTALL)
_CACHED = {"type": "ephemeral"}


def messages_request(request: ModelRequest, spec: ModelSpec) -> dict[str, Any]:
    """Return the body of the request, `stream` and all."""
    blocks = arranged(request.messages)
    max_tokens = request.max_tokens or spec.max_tokens or DEFAULT_MAX_TOKENS
    messages = wire_messages(blocks, is_vision=spec.is_vision)
    _mark_for_cache(messages)
    body: dict[str, Any] = {
        "model": spec.model_id,
        "max_tokens": max_tokens,
        "messages": messages,
        "stream": True,
        **_tools(request, blocks),
    }
    if request.system_prompt.strip():
        text = {"type": "text", "text": clean(request.system_prompt)}
        body["system"] = [{**text, "cache_control": _CACHED}]
    budget = _budget(request.thinking_level, max_tokens=max_tokens)
    if budget and _allows_thinking(blocks):
        body["thinking"] = {"type": "enabled", "budget_tokens": budget}
    return body


def wire_messages(
    blocks: Iterable[UserBlock | AssistantBlock], *, is_vision: bool
) -> list[Content]:
    """Return the conversation as messages of the wire, the user's first.

    Consecutive messages of one role are fine: the API joins them.
    """
    result: list[Content] = []
    for block in blocks:
        if isinstance(block, UserBlock):
            parts = [_user_part(part, is_vision=is_vision) for part in block.parts]
            result.append({"role": "user", "content": parts})
            continue
        answer = [found for part in block.parts if (found := _answer_part(part))]
        if answer:
            if not result:
                result.append({"role": "user", "content": [_text("[continued]")]})
            result.append({"role": "assistant", "content": answer})
        if block.calls:
            outputs = (block.output_of(call) for call in block.calls)
            results = [_output(output, is_vision=is_vision) for output in outputs]
            result.append({"role": "user", "content": results})
    return result


def _text(text: str) -> Content:
    return {"type": "text", "text": clean(text)}


def _user_part(part: UserPart, *, is_vision: bool) -> Content:
    match part:
        case p.Text(text=text):
            return _text(text)
        case p.ImageUrl(image_url=url):
            return _image(url, is_vision=is_vision)
        case p.InlineData(data=data, mime_type=mime_type):
            return _image(f"data:{mime_type};base64,{data}", is_vision=is_vision)


def _image(url: str, *, is_vision: bool) -> Content:
    if not is_vision:
        return _text(NO_IMAGE)
    inline = _DATA_URL.fullmatch(url)
    if inline is None:
        return {"type": "image", "source": {"type": "url", "url": clean(url)}}
    mime_type, data = inline.groups()
    source = {"type": "base64", "media_type": mime_type, "data": data}
    return {"type": "image", "source": source}


def _answer_part(part: AssistantPart) -> Content | None:
    match part:
        case p.Text(text=text):
            return _text(text)
        case p.Thinking():
            return _thought(part)
        case p.ToolCall():
            arguments = arguments_object(part)
            return {
                "type": "tool_use",
                "id": wire_name(part.tool_call_id),
                "name": wire_name(part.name),
                "input": substitute(part) if arguments is None else arguments,
            }
    return None


def _thought(thought: p.Thinking) -> Content | None:
    """Return the thought as it was signed; the API takes no other back."""
    match thought.fidelity:
        case {"signature": str(signature)}:
            return {
                "type": "thinking",
                "thinking": thought.thinking,
                "signature": signature,
            }
        case {"redacted_thinking": str(data)}:
            return {"type": "redacted_thinking", "data": data}
    return None


def _output(output: p.ToolCallOutput, *, is_vision: bool) -> Content:
    images = [_image(url, is_vision=is_vision) for url in output.images]
    result: Content = {
        "type": "tool_result",
        "tool_use_id": wire_name(output.tool_call_id),
        "content": [_text(output.output or "[no output]"), *images],
    }
    if output.stop_reason is not StopReason.COMPLETED:
        result["is_error"] = True
    return result


def _mark_for_cache(messages: Sequence[Content]) -> None:
    """Mark the end of this request and of the one before it.

    The second mark finds what the last request wrote even when many parallel calls
    lie between; the API looks back only some blocks.
    """
    ends = [len(messages) - 1]
    answers = [
        i for i, message in enumerate(messages) if message["role"] == "assistant"
    ]
    ends += [answers[-1] - 1] if answers else []
    for index in ends:
        if index >= 0 and messages[index]["role"] == "user":
            messages[index]["content"][-1]["cache_control"] = _CACHED


def _tools(
    request: ModelRequest, blocks: Iterable[UserBlock | AssistantBlock]
) -> dict[str, Any]:
    """Return the tools; a history with calls may not come without any.

    Where none are offered, those called before are named, and calling is ruled out.
    """
    if request.tools:
        return {
            "tools": [
                {
                    "name": tool["name"],
                    "description": tool.get("description", ""),
                    "input_schema": tool["parameters"],
                }
                for tool in request.tools
            ]
        }
    answers = [block for block in blocks if isinstance(block, AssistantBlock)]
    names = {wire_name(call.name) for block in answers for call in block.calls}
    if not names:
        return {}
    schema = {"type": "object"}
    return {
        "tools": [{"name": name, "input_schema": schema} for name in sorted(names)],
        "tool_choice": {"type": "none"},
    }


def _budget(thinking_level: str | None, *, max_tokens: int) -> int | None:
    share = _BUDGETS.get(thinking_level or "none")
    if share is None or max_tokens <= MIN_BUDGET:
        return None
    return max(MIN_BUDGET, int(max_tokens * share))


def _allows_thinking(blocks: Sequence[UserBlock | AssistantBlock]) -> bool:
    """Return whether thinking may be on: calls made without it forbid it.

    The API refuses to go on thinking behind calls whose answer did not begin with a
    signed thought, as when the thinking level was raised between two turns.
    """
    answers = [block for block in blocks if isinstance(block, AssistantBlock)]
    if not answers or not answers[-1].calls:
        return True
    first = next(filter(None, map(_answer_part, answers[-1].parts)))
    return first["type"] in ("thinking", "redacted_thinking")
