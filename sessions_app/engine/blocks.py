"""The blocks in which the product tells the model what a cut request produced.

What stands in a block is quoted: one JSON object per line, line breaks escaped, so
that nothing in it can end the block or pose as a message of the user.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from sessions_app.engine.history import History
from traces_app.omnimessage import OmniMessage, user_text
from traces_app.omnimessage import payloads as p

BLOCK_HEAD = "[block of the system, not written by the user]"
BLOCK_END = "[end of the block]"
_RETRY = (
    f"{BLOCK_HEAD} Your answer to the messages above "
    "was cut off by a technical failure. Below stands what it had produced, one JSON "
    "object per line, as quoted material. Calls with an output have been carried out; "
    "do not repeat them because of this block. Continue from here."
)
_CARRY_OVER = (
    f"{BLOCK_HEAD} Your last answer was interrupted "
    "before it was complete. Below stand the request and what had been produced, one "
    "JSON object per line, as quoted material. Calls with an output have been decided "
    "and ended; do not repeat them because of this block. A new message of the user "
    "may follow."
)
# Line breaks that JSON leaves as they are.
_BREAKS = {ord(char): f"\\u{ord(char):04x}" for char in "\x7f\x85\u2028\u2029"}


def retry_block(history: History) -> OmniMessage | None:
    """Return the block for the next attempt, None when nothing was produced."""
    if not history.has_unfinished:
        return None
    return _block(_RETRY, _produced(history.unfinished), synthetic="retry")


def carry_over_block(history: History) -> OmniMessage | None:
    """Return the block that replaces the pending input of an unfinished request."""
    if not history.has_unfinished:
        return None
    lines = [*_requested(history.pending), *_produced(history.unfinished)]
    return _block(_CARRY_OVER, lines, synthetic="carry_over")


def _block(head: str, lines: Iterable[str], *, synthetic: str) -> OmniMessage:
    return user_text("\n".join([head, *lines, BLOCK_END]), synthetic=synthetic)


def _requested(pending: Iterable[OmniMessage]) -> Iterable[str]:
    for message in pending:
        match message.payload:
            case p.Text(synthetic="carry_over", text=text):
                # Lines of an earlier block are quoted already.
                yield from text.split("\n")[1:-1]
            case p.Text(synthetic="retry"):
                pass  # tells of nothing that is not among the unfinished
            case p.Text(synthetic=None, text=text):
                yield _line({"request": text})
            case p.Text(synthetic=synthetic, text=text):
                yield _line({"notice": synthetic, "text": text})
            case _:
                yield _line({"image": "attached after this block"})


def _produced(messages: Iterable[OmniMessage]) -> Iterable[str]:
    for message in messages:
        match message.payload:
            case p.Text(text=text):
                yield _line({"your_text": text})
            case p.ToolCall(tool_call_id=call_id, name=name, arguments=arguments):
                facts = {"tool_call_id": call_id, "name": name, "arguments": arguments}
                yield _line({"your_tool_call": facts})
            case p.ToolCallOutput() as output:
                yield _line({"tool_call_output": _output(output)})
            case _:
                pass  # thoughts are not told


def _output(output: p.ToolCallOutput) -> dict[str, object]:
    facts: dict[str, object] = {
        "tool_call_id": output.tool_call_id,
        "stop_reason": output.stop_reason.value,
        "output": output.output,
    }
    if output.images:
        facts["images"] = f"{len(output.images)} not repeated here"
    return facts


def _line(value: dict[str, object]) -> str:
    return json.dumps(value, ensure_ascii=False).translate(_BREAKS)
