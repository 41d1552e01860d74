"""A session's messages as plain text for a terminal, as they come."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, TextIO

from traces_app.arguments import read_arguments, spell
from traces_app.omnimessage import OmniMessage, StopReason
from traces_app.omnimessage import payloads as p

LABEL = 60  # characters of a call where another text came in between
# What could steer a terminal, or turn the text around.
_STEERING = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]"
)


def harmless(text: str) -> str:
    """Return text that a terminal shows and does not obey."""
    return _STEERING.sub(lambda found: f"\\u{{{ord(found[0]):x}}}", text)


class Transcript:
    """Writes what the agent says and what its tools print; troubles go to `err`.

    Texts that stream at the same time take turns, each under its name.
    """

    def __init__(self, out: TextIO, err: TextIO) -> None:
        self._out = out
        self._err = err
        self._speaker = ""  # whose text was written last
        self._is_line_open = False
        self._written: dict[str, int] = {}  # speaker: characters of its text so far
        self._calls: dict[str, str] = {}  # tool_call_id: the call in a few words

    def take(self, message: OmniMessage) -> None:
        """Write what the message adds."""
        show = _SHOWN.get(type(message.payload))
        if show is not None:
            child = f"subagent {message.origin[-1]}" if message.origin else ""
            show(self, message.payload, child)
            self._out.flush()

    def _piece(self, speaker: str, text: str, heading: str) -> None:
        if text:
            self._turn_to(speaker, heading)
            self._out.write(harmless(text))
            self._is_line_open = not text.endswith("\n")
            self._written[speaker] = self._written.get(speaker, 0) + len(text)

    def _whole(self, speaker: str, text: str, heading: str) -> None:
        """Write what its pieces have not told of a complete text."""
        self._piece(speaker, text[self._written.get(speaker, 0) :], heading)
        self._written.pop(speaker, None)
        self._end_line()

    def _turn_to(self, speaker: str, heading: str) -> None:
        if speaker != self._speaker:
            self._end_line()
            self._speaker = speaker
            if heading:
                self._out.write(f"{harmless(heading)}\n")

    def _end_line(self) -> None:
        if self._is_line_open:
            self._out.write("\n")
            self._is_line_open = False

    def _trouble(self, text: str) -> None:
        self._end_line()
        self._out.flush()
        self._err.write(f"{harmless(text)}\n")
        self._err.flush()

    def _partial_text(self, piece: p.PartialText, child: str) -> None:
        self._piece(f"{child}/text", piece.text, _named(child))

    def _partial_thinking(self, piece: p.PartialThinking, child: str) -> None:
        self._piece(f"{child}/think", piece.thinking, _named(child, "thinking"))

    def _partial_output(self, piece: p.PartialToolCallOutput, child: str) -> None:
        call_id = piece.tool_call_id
        self._piece(f"{child}/{call_id}", piece.output, self._call_named(call_id))

    def _text(self, text: p.Text, child: str) -> None:
        if text.role == "assistant":
            self._whole(f"{child}/text", text.text, _named(child))

    def _thinking(self, thought: p.Thinking, child: str) -> None:
        self._whole(f"{child}/think", thought.thinking, _named(child, "thinking"))

    def _call(self, call: p.ToolCall, child: str) -> None:
        name = "".join(span.text for span in spell(call.name))
        words = f"{name} {read_arguments(call.name, call.arguments).summary}".rstrip()
        self._calls[call.tool_call_id] = words
        who = f"{_named(child)} " if child else ""
        # An output that follows at once needs no name of its own.
        self._turn_to(f"{child}/{call.tool_call_id}", f"{who}→ {words}")

    def _output(self, output: p.ToolCallOutput, child: str) -> None:
        call_id = output.tool_call_id
        images = f"[images: {len(output.images)}]" if output.images else ""
        text = "\n".join(filter(None, [output.output, images]))
        self._whole(f"{child}/{call_id}", text, self._call_named(call_id))

    def _call_named(self, call_id: str) -> str:
        words = self._calls.get(call_id, call_id)
        return f"← {words[:LABEL]}{'…' if len(words) > LABEL else ''}"

    def _request_end(self, end: p.RequestEnd, _: str) -> None:
        if end.status in (StopReason.COMPLETED, StopReason.ABORTED):
            return
        words = f"The model request failed ({end.status}): {end.error_message}"
        if end.retry_in_ms is not None:
            words += (
                f"; attempt {end.attempt}, the next in {end.retry_in_ms / 1000:g} s"
            )
        self._trouble(words)

    def _abort(self, abort: p.Abort, child: str) -> None:
        self._trouble(f"{child or 'Stopped'}: {abort.reason}")

    def _compacting(self, begin: p.CompactionBegin, _: str) -> None:
        self._trouble(f"Compacting the context ({begin.reason})")

    def _evicted(self, gone: p.ProcessEvicted, _: str) -> None:
        self._trouble(f"{gone.process_id} was ended to make room for a newer command")


def _named(*names: str) -> str:
    name = " ".join(filter(None, names))
    return f"[{name}]" if name else ""


_SHOWN: Mapping[type[p.Payload], Callable[[Transcript, Any, str], None]] = {
    p.PartialText: Transcript._partial_text,
    p.PartialThinking: Transcript._partial_thinking,
    p.PartialToolCallOutput: Transcript._partial_output,
    p.Text: Transcript._text,
    p.Thinking: Transcript._thinking,
    p.ToolCall: Transcript._call,
    p.ToolCallOutput: Transcript._output,
    p.RequestEnd: Transcript._request_end,
    p.Abort: Transcript._abort,
    p.CompactionBegin: Transcript._compacting,
    p.ProcessEvicted: Transcript._evicted,
}
