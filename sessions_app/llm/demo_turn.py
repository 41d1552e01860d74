"""What the demo model plays next, read from the request alone.

1. The last message a person typed is the script; blocks the product wrote are not.
2. Each tool turn completed since then used up one of its parts.
3. `fail` lets the first attempt fail. The next attempt goes on behind that line. Its
   retry block tells what became of the calls made before: those that ran are not
   made again, those that were not run are.
"""

from __future__ import annotations

from collections.abc import Sequence

from sessions_app.llm.client import ModelRequest
from sessions_app.llm.demo_script import Step, has_call, parse
from traces_app.omnimessage import OmniMessage
from traces_app.omnimessage import payloads as p

SUMMARY = "Summary by the demo model: a scripted conversation, nothing to remember."
TITLE = "Demo conversation"
NOTHING_LEFT = "Nothing is left to do."
_NOT_RUN = "[not run:"  # how the output of a call begins that the engine settled


def steps_to_play(request: ModelRequest) -> Sequence[Step]:
    """Return the lines of this request; never empty."""
    if request.purpose != "turn":
        return [_say(SUMMARY if request.purpose == "summary" else TITLE)]
    script, since = _typed(request.messages)
    parts = parse(script) or [[Step(kind="greet")]]
    place, resumed_at = 0, -1
    has_open_calls = False
    for message in since:
        match message.payload:
            case p.ToolCall():
                has_open_calls = True
            case p.ToolCallOutput():
                place += has_open_calls
                has_open_calls = False
            case p.Text(synthetic="retry", text=block):
                parts[place:] = _resumed(parts[place:], block)
                resumed_at = place
    if request.attempt > 1 and resumed_at != place:
        parts[place:] = _resumed(parts[place:], "")
    if place >= len(parts):
        return [_say(_results(since))]
    is_first = request.attempt == 1
    steps = [step for step in parts[place] if is_first or step.kind != "fail"]
    return steps or [_say(NOTHING_LEFT)]


def _say(text: str) -> Step:
    return Step(kind="say", text=text)


def _typed(messages: Sequence[OmniMessage]) -> tuple[str, Sequence[OmniMessage]]:
    for index in range(len(messages) - 1, -1, -1):
        match messages[index].payload:
            case p.Text(role="user", synthetic=None, text=text):
                return text, messages[index + 1 :]
    return "", messages


def _resumed(parts: list[list[Step]], retry_block: str) -> list[list[Step]]:
    """Return what is left after an attempt at the first part failed."""
    if not parts:
        return parts
    first, *later = parts
    kinds = [step.kind for step in first]
    if "fail" not in kinds:
        return parts
    made = first[: kinds.index("fail")]
    left = [step for step in first[len(made) :] if step.kind != "fail"]
    if _NOT_RUN in retry_block:
        left = [step for step in made if step.kind == "call"] + left
    if later and not has_call(left):  # the results `then` waits for are in the block
        left += later.pop(0)
    return [left, *later]


def _results(since: Sequence[OmniMessage]) -> str:
    """Return `NAME → stop_reason` for each call of the last tool turn."""
    names: dict[str, str] = {}
    lines: list[str] = []
    is_new_turn = True
    for message in since:
        match message.payload:
            case p.ToolCall(tool_call_id=call_id, name=name):
                names[call_id] = name
                is_new_turn = True
            case p.ToolCallOutput(tool_call_id=call_id, stop_reason=reason):
                lines = [] if is_new_turn else lines
                lines.append(f"{names.get(call_id, call_id)} → {reason}")
                is_new_turn = False
    return "\n".join(lines) or NOTHING_LEFT
