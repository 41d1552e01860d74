"""Reads the events of an Anthropic Messages stream.

A call is complete when its content block has stopped and its arguments are an object,
else when the next block begins or the stop reason is one of a whole answer: cut off at
`max_tokens`, the API stops the block too. Such a call was never a call, and as with
chat completions the request then counts as malformed, not as completed.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator, Mapping
from typing import Any

from sessions_app.llm.client import MalformedStreamError
from sessions_app.llm.pieces import CallPart, TextPart
from sessions_app.llm.wire_errors import cut_answer
from traces_app.omnimessage import OmniMessage, thinking
from traces_app.omnimessage.payloads import Usage

LINGER_S = 0.1
# "": compatible servers may leave the reason out; `message_stop` says enough.
_WHOLE = ("", "end_turn", "tool_use", "stop_sequence", "pause_turn")


class MessageStream:
    """Turns the events of one answer into messages."""

    def __init__(self) -> None:
        # None until `message_stop`; then the time for the connection to end well.
        self.linger_s: float | None = None
        self._stop_reason = ""
        self._counts: dict[str, int] = {}
        self._text: TextPart | None = None
        self._signature: str | None = None
        self._call: CallPart | None = None  # not yet complete
        self._whole_input: Any = None  # arguments given without a delta
        self._has_answer = False

    def feed(self, event: Mapping[str, Any]) -> Iterator[OmniMessage]:
        """Take one event; kinds that are not known are passed over."""
        match event.get("type"):
            case "message_start":
                self._count((event.get("message") or {}).get("usage"))
            case "content_block_start":
                yield from self._complete_call()
                yield from self._start(event.get("content_block") or {})
            case "content_block_delta":
                yield from self._delta(event.get("delta") or {})
            case "content_block_stop":
                yield from self._stop()
            case "message_delta":
                self._count(event.get("usage"))
                delta = event.get("delta") or {}
                self._stop_reason = delta.get("stop_reason") or self._stop_reason
            case "message_stop":
                self.linger_s = LINGER_S
                if self._stop_reason in _WHOLE:
                    yield from self._complete_call()

    def end(self) -> Iterator[Usage]:
        """Yield the usage; raises `LLMError` if the answer is not whole."""
        if self.linger_s is None:
            raise MalformedStreamError("the stream ended without message_stop")
        if self._counts:
            yield _usage(self._counts)
        is_whole = self._stop_reason in _WHOLE
        tool = self._call.name if self._call else None
        if tool is not None or not (is_whole or self._has_answer):
            raise cut_answer(self._stop_reason, tool=tool)

    def _count(self, usage: Any) -> None:
        for name, value in (usage or {}).items():
            if isinstance(value, int):
                self._counts[name] = value

    def _start(self, block: Mapping[str, Any]) -> Iterator[OmniMessage]:
        match block.get("type"):
            case "text":
                self._text = TextPart("text")
                yield from self._words(block.get("text") or "")
            case "thinking":
                self._text = TextPart("thinking")
                self._signature = block.get("signature") or None
                yield from self._words(block.get("thinking") or "")
            case "redacted_thinking":
                yield thinking("", fidelity={"redacted_thinking": block.get("data")})
            case "tool_use":
                tool_call_id = block.get("id") or f"call_{secrets.token_hex(8)}"
                name = block.get("name") or ""
                self._call = CallPart(tool_call_id=tool_call_id, name=name)
                self._whole_input = block.get("input")
                yield self._call.start()

    def _words(self, text: str) -> Iterator[OmniMessage]:
        if self._text is not None:
            is_answer = bool(text) and self._text.kind == "text"
            self._has_answer = self._has_answer or is_answer
            yield from self._text.delta(text)

    def _delta(self, delta: Mapping[str, Any]) -> Iterator[OmniMessage]:
        match delta.get("type"):
            case "text_delta":
                yield from self._words(delta.get("text") or "")
            case "thinking_delta":
                yield from self._words(delta.get("thinking") or "")
            case "signature_delta":
                signature = delta.get("signature") or ""
                self._signature = (self._signature or "") + signature
            case "input_json_delta" if self._call is not None:
                yield from self._call.delta(delta.get("partial_json") or "")

    def _stop(self) -> Iterator[OmniMessage]:
        part, self._text = self._text, None
        if part is not None:
            signature, self._signature = self._signature, None
            is_signed = part.kind == "thinking" and signature is not None
            yield from part.close(
                fidelity={"signature": signature} if is_signed else None
            )
        elif self._call is not None and _is_object(
            self._call.arguments or self._whole_input
        ):
            yield from self._complete_call()

    def _complete_call(self) -> Iterator[OmniMessage]:
        call, self._call = self._call, None
        if call is None:
            return
        if not call.name:
            raise MalformedStreamError("the provider sent a tool call without a name")
        self._has_answer = True
        if not call.arguments:
            yield from call.delta(json.dumps(self._whole_input or {}))
        yield from call.close()


def _is_object(arguments: Any) -> bool:
    """Return whether the arguments are whole; an empty object may be a beginning."""
    if isinstance(arguments, str):
        try:
            return isinstance(json.loads(arguments), dict)
        except (ValueError, RecursionError):
            return False
    return isinstance(arguments, dict) and bool(arguments)


def _usage(counts: Mapping[str, int]) -> Usage:
    """Count input that the cache did not hold as written to it, marked or not."""
    read = counts.get("cache_read_input_tokens", 0)
    plain = counts.get("input_tokens", 0)
    write = counts.get("cache_creation_input_tokens", 0) + plain
    output = counts.get("output_tokens", 0)
    return Usage(
        cache_read=read,
        cache_write=write,
        output=output,
        total=read + write + output,
        input=plain,
    )
