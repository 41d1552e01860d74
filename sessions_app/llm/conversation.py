"""Arranges a flat history into blocks that any provider accepts.

Both wires want the same shape: what the user said, what the assistant answered, and
behind each answer with calls exactly one output per call, in call order, before
anything else. A block never changes once the next one has begun, so what was sent
stays a prefix of what is sent next and prompt caches hold.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from traces_app.omnimessage import OmniMessage, StopReason
from traces_app.omnimessage import payloads as p

UserPart = p.Text | p.ImageUrl | p.InlineData
AssistantPart = p.Text | p.Thinking | p.InlineData | p.ToolCall
NO_IMAGE = "[image left out: this model cannot see images]"
_NO_OUTPUT = "[no output: the call did not come to its end]"
_NOT_A_NAME = re.compile(r"[^a-zA-Z0-9_-]")


@dataclass(slots=True)
class UserBlock:
    """Texts and images of the user side between two answers."""

    parts: list[UserPart] = field(default_factory=list)


@dataclass(slots=True)
class AssistantBlock:
    """One answer of the model and the outputs of its calls, by call id."""

    parts: list[AssistantPart] = field(default_factory=list)
    outputs: dict[str, p.ToolCallOutput] = field(default_factory=dict)

    @property
    def calls(self) -> list[p.ToolCall]:
        """Return the calls in order."""
        return [part for part in self.parts if isinstance(part, p.ToolCall)]

    def output_of(self, call: p.ToolCall) -> p.ToolCallOutput:
        """Return the call's output, made up when the history holds none."""
        return self.outputs.get(call.tool_call_id) or p.ToolCallOutput(
            role="user",
            tool_call_id=call.tool_call_id,
            output=_NO_OUTPUT,
            stop_reason=StopReason.ABORTED,
        )

    def lacks(self, tool_call_id: str) -> bool:
        """Return whether a call of this id still has no output."""
        is_ours = any(call.tool_call_id == tool_call_id for call in self.calls)
        return is_ours and tool_call_id not in self.outputs


def arranged(messages: Iterable[OmniMessage]) -> list[UserBlock | AssistantBlock]:
    """Return the history as blocks; pieces, events and empty texts are left out."""
    blocks: list[UserBlock | AssistantBlock] = []
    for message in messages:
        match message.payload:
            case p.ToolCallOutput() as output:
                _add_output(blocks, output)
            case p.Text(text=text) if not text.strip():
                pass
            case p.Text(role="user") | p.ImageUrl() | p.InlineData(role="user") as part:
                _add_user(blocks, part)
            case p.Text() | p.Thinking() | p.InlineData() | p.ToolCall() as part:
                _add_assistant(blocks, part)
    return blocks


def _add_user(blocks: list[UserBlock | AssistantBlock], part: UserPart) -> None:
    last = blocks[-1] if blocks else None
    if not isinstance(last, UserBlock):
        last = UserBlock()
        blocks.append(last)
    last.parts.append(part)


def _add_assistant(
    blocks: list[UserBlock | AssistantBlock], part: AssistantPart
) -> None:
    last = blocks[-1] if blocks else None
    if not isinstance(last, AssistantBlock) or last.outputs:
        last = AssistantBlock()
        blocks.append(last)
    last.parts.append(part)


def _add_output(
    blocks: list[UserBlock | AssistantBlock], output: p.ToolCallOutput
) -> None:
    for block in reversed(blocks):
        if isinstance(block, AssistantBlock) and block.lacks(output.tool_call_id):
            block.outputs[output.tool_call_id] = output
            return
    text = f"[output of a call that is not in this conversation]\n{output.output}"
    _add_user(blocks, p.Text(role="user", text=text, synthetic="notice"))


def clean(text: str) -> str:
    """Return the text without NUL and lone surrogates, which no wire carries."""
    text = text.replace("\x00", "\u2400")
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def wire_name(name: str) -> str:
    """Return a tool name or call id of the characters both wires allow.

    A model may call what does not exist; its words go back, made harmless.
    """
    return _NOT_A_NAME.sub("_", name)[:128] or "unnamed"


def arguments_object(call: p.ToolCall) -> dict[str, Any] | None:
    """Return the call's arguments, or None if they are no JSON object."""
    try:
        value = json.loads(call.arguments.strip() or "{}", parse_constant=_refuse)
        # Once more, for surrogates that stood in it as escapes.
        value = json.loads(clean(json.dumps(value, ensure_ascii=False)))
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def substitute(call: p.ToolCall) -> dict[str, Any]:
    """Return the object that stands for arguments no provider would take back.

    Anthropic wants an object and llama.cpp answers 500 to unfinished JSON, so what
    the model wrote goes back as the text inside a well-formed object.
    """
    return {"unparsable_arguments": clean(call.arguments)}


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON")
