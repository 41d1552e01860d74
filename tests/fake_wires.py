"""How a scripted answer looks on the wire of each kind of provider."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Say:
    """A text, streamed word by word."""

    text: str


@dataclass(frozen=True)
class Think:
    """A thought; Anthropic's are signed."""

    text: str
    signature: str = "sig-1"


@dataclass(frozen=True)
class Call:
    """A tool call; arguments given as text are sent as they are, valid or not."""

    name: str
    arguments: dict[str, Any] | str = field(default_factory=dict)
    id: str | None = None  # None: numbered by the server

    @property
    def text(self) -> str:
        is_text = isinstance(self.arguments, str)
        return self.arguments if is_text else json.dumps(self.arguments)


@dataclass(frozen=True)
class Pause:
    """Silence."""

    seconds: float


@dataclass(frozen=True)
class Hold:
    """Silence until the test sets the event."""

    until: threading.Event


@dataclass(frozen=True)
class Cut:
    """The connection drops here."""


Piece = bytes | Pause | Hold | Cut
Part = Say | Think | Call | Piece


class Answer:
    """One answer of the model; bytes among the parts go out as they are."""

    def __init__(
        self,
        *parts: Part,
        finish: str | None = None,  # in the words of the wire; None: what fits
        tokens: tuple[int, int, int] = (100, 60, 20),  # input, of it cached, output
        headers_after_s: float = 0.0,
    ) -> None:
        self.parts = parts
        self.tokens = tokens
        self.headers_after_s = headers_after_s
        self.has_calls = any(isinstance(part, Call) for part in parts)
        self.finish = finish


class Bytes:
    """A stream told byte for byte."""

    def __init__(self, *pieces: Piece, headers_after_s: float = 0.0) -> None:
        self.pieces = pieces
        self.headers_after_s = headers_after_s


@dataclass(frozen=True)
class Status:
    """An answer that is no stream."""

    code: int
    body: dict[str, Any] | str


def chat_chunk(delta: dict[str, Any] | None = None, **fields: Any) -> bytes:
    """Return one chunk; `fields` go into its only choice."""
    choice = {"index": 0, "delta": delta or {}, "finish_reason": None, **fields}
    return chat_data({"choices": [choice]})


def chat_data(fields: dict[str, Any]) -> bytes:
    """Return a line of the stream with the frame every chunk has."""
    frame = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "model": "m"}
    return b"data: " + json.dumps({**frame, "created": 1, **fields}).encode() + b"\n\n"


def chat_call(index: int | None, arguments: str, **fields: Any) -> bytes:
    """Return a chunk with one fragment of a call."""
    fragment = {"index": index, "function": {"arguments": arguments}, **fields}
    return chat_chunk({"tool_calls": [fragment]})


def chat_usage(prompt: int, cached: int, output: int) -> bytes:
    usage = {
        "prompt_tokens": prompt,
        "completion_tokens": output,
        "total_tokens": prompt + output,
        "prompt_tokens_details": {"cached_tokens": cached},
    }
    return chat_data({"choices": [], "usage": usage})


CHAT_DONE = b"data: [DONE]\n\n"


def as_chat(answer: Answer, number: int) -> Iterator[Piece]:
    """Write the answer as the chunks of a chat completion."""
    yield chat_chunk({"role": "assistant", "content": None})
    index = 0
    for part in answer.parts:
        match part:
            case Say(text=text):
                yield from (chat_chunk({"content": word}) for word in _words(text))
            case Think(text=text):
                for word in _words(text):
                    yield chat_chunk({"reasoning_content": word})
            case Call(name=name):
                call_id = part.id or f"call_{number}_{index}"
                start = {"name": name, "arguments": ""}
                yield chat_call(index, "", id=call_id, type="function", function=start)
                yield from (chat_call(index, text) for text in _bits(part.text))
                index += 1
            case Cut():
                yield part
                return
            case _:
                yield part
    fitting = "tool_calls" if answer.has_calls else "stop"
    yield chat_chunk(finish_reason=answer.finish or fitting)
    yield chat_usage(*answer.tokens)
    yield CHAT_DONE


def anthropic_event(kind: str, **fields: Any) -> bytes:
    """Return one event of a Messages stream."""
    data = json.dumps({"type": kind, **fields})
    return f"event: {kind}\ndata: {data}\n\n".encode()


def anthropic_block(
    index: int, start: dict[str, Any], *deltas: dict[str, Any]
) -> Iterator[bytes]:
    """Write one content block from its start to its stop."""
    yield anthropic_event("content_block_start", index=index, content_block=start)
    for delta in deltas:
        yield anthropic_event("content_block_delta", index=index, delta=delta)
    yield anthropic_event("content_block_stop", index=index)


def anthropic_start(prompt: int, cached: int) -> bytes:
    usage = {
        "input_tokens": prompt - cached,
        "cache_read_input_tokens": cached,
        "cache_creation_input_tokens": 0,
        "output_tokens": 1,
    }
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m"}
    return anthropic_event(
        "message_start", message={**message, "content": [], "usage": usage}
    )


def anthropic_end(stop_reason: str, output: int) -> Iterator[bytes]:
    delta = {"stop_reason": stop_reason, "stop_sequence": None}
    usage = {"output_tokens": output}
    yield anthropic_event("message_delta", delta=delta, usage=usage)
    yield anthropic_event("message_stop")


def as_anthropic(answer: Answer, number: int) -> Iterator[Piece]:
    """Write the answer as the events of a Messages stream."""
    prompt, cached, output = answer.tokens
    yield anthropic_start(prompt, cached)
    yield anthropic_event("ping")
    index = 0
    for part in answer.parts:
        if isinstance(part, Say | Think | Call):
            yield from _block(part, index, number)
            index += 1
            continue
        yield part
        if isinstance(part, Cut):
            return
    fitting = "tool_use" if answer.has_calls else "end_turn"
    yield from anthropic_end(answer.finish or fitting, output)


def _block(part: Say | Think | Call, index: int, number: int) -> Iterator[bytes]:
    match part:
        case Say(text=text):
            words = ({"type": "text_delta", "text": word} for word in _words(text))
            return anthropic_block(index, {"type": "text", "text": ""}, *words)
        case Think(text=text, signature=signature):
            deltas = [{"type": "thinking_delta", "thinking": w} for w in _words(text)]
            deltas.append({"type": "signature_delta", "signature": signature})
            start = {"type": "thinking", "thinking": "", "signature": ""}
            return anthropic_block(index, start, *deltas)
        case Call(name=name):
            call_id = part.id or f"toolu_{number}_{index}"
            start = {"type": "tool_use", "id": call_id, "name": name, "input": {}}
            bits = _bits(part.text)
            deltas = [{"type": "input_json_delta", "partial_json": b} for b in bits]
            return anthropic_block(index, start, *deltas)


def _words(text: str) -> list[str]:
    return re.findall(r"\s*\S+\s*?", text)


def _bits(text: str, size: int = 4) -> list[str]:
    return [text[i : i + size] for i in range(0, len(text), size)]
