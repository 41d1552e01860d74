"""The demo model: no AI, no network; it plays the lines a person typed."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from collections.abc import AsyncGenerator, Iterator
from dataclasses import replace

from sessions_app.llm.client import (
    CredentialsError,
    LLMError,
    MalformedStreamError,
    ModelRequest,
    RequestTimeoutError,
)
from sessions_app.llm.demo_script import Step
from sessions_app.llm.demo_turn import steps_to_play
from sessions_app.llm.model_spec import ModelSpec
from sessions_app.llm.pieces import CallPart, TextPart
from traces_app.omnimessage import OmniMessage
from traces_app.omnimessage import payloads as p

WORD_DELAY_S = 0.01  # slow enough to be seen, fast enough for scripts
BYTES_PER_TOKEN = 4
# Shown as buttons below the greeting; each is a message the demo model can play.
SUGGESTIONS = (
    "$ ls -la",
    'call exec_command {"cmd": "uname -a"}',
    "$ for i in 1 2 3; do echo line $i; sleep 1; done\nthen\nsay That was all.",
    "think There is nothing to think about.\nsay Hello, word by word.",
    "sleep 2\nsay That was a pause.",
    "fail timeout\nsay The second attempt went through.",
)
GREETING = """\
Hello! I am the demo model. I am no AI, I only play the lines you type:

- `$ CMD` runs a shell command
- `call NAME JSON` calls any tool; several lines make parallel calls
- `then` on a line of its own waits for the results
- `say TEXT` and `think TEXT` answer
- `sleep SECONDS` pauses
- `fail auth`, `fail timeout`, `fail malformed` or `fail failed` lets the first attempt fail so"""
_FAILURES: dict[str, tuple[type[LLMError], str]] = {
    "auth": (CredentialsError, "credentials rejected"),
    "timeout": (RequestTimeoutError, "no answer in time"),
    "malformed": (MalformedStreamError, "the stream broke off"),
    "failed": (LLMError, "503 out of order"),
}


class DemoClient:
    """Plays the last message typed by a person; see `demo_script` for the language."""

    def __init__(self, spec: ModelSpec, *, word_delay_s: float = WORD_DELAY_S) -> None:
        self.provider = spec.provider
        self.model_id = spec.model_id
        self.is_vision = spec.is_vision
        self.context_window = spec.context_window
        self._word_delay_s = word_delay_s

    async def stream(
        self, request: ModelRequest
    ) -> AsyncGenerator[OmniMessage | p.Usage, None]:
        """Play what is due; the usage is an estimate from the number of bytes."""
        written = 0
        seed = _seed(request)
        for index, step in enumerate(steps_to_play(request)):
            if step.kind == "sleep":
                await asyncio.sleep(step.seconds)
            elif step.kind == "fail":
                error, words = _FAILURES[step.text]
                raise error(f"The demo model was told to fail: {words}")
            else:
                written += _bytes(step.text)
                for piece in _pieces(step, f"call_{seed}{index:02d}"):
                    await asyncio.sleep(self._delay_s(piece))
                    yield piece
        yield _usage(request, written)

    def _delay_s(self, piece: OmniMessage) -> float:
        is_word = isinstance(piece.payload, (p.PartialText, p.PartialThinking))
        return self._word_delay_s if is_word else 0.0

    async def aclose(self) -> None:
        """Do nothing: there are no connections."""


def _pieces(step: Step, call_id: str) -> Iterator[OmniMessage]:
    if step.kind == "call":
        call = CallPart(tool_call_id=call_id, name=step.name)
        yield call.start()
        yield from call.delta(step.text)
        yield from call.close()
        return
    part = TextPart("thinking" if step.kind == "think" else "text")
    for word in re.findall(
        r"\s*\S+\s*?", GREETING if step.kind == "greet" else step.text
    ):
        yield from part.delta(word)
    for piece in part.close():
        yield _with_suggestions(piece) if step.kind == "greet" else piece


def _with_suggestions(message: OmniMessage) -> OmniMessage:
    if message.is_partial:
        return message
    payload = replace(message.payload, extra={"suggestions": list(SUGGESTIONS)})
    return replace(message, payload=payload)


def _seed(request: ModelRequest) -> str:
    """Tell requests apart in call ids: the same one always gives the same ids."""
    facts = [request.attempt, *map(_fact, request.messages)]
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:14]


def _fact(message: OmniMessage) -> str:
    match message.payload:
        case p.Text(text=text):
            return text
        case p.ToolCall(tool_call_id=tool_call_id):
            return tool_call_id
    return message.kind


def _usage(request: ModelRequest, written: int) -> p.Usage:
    read = _bytes(request.system_prompt) + sum(map(_size, request.messages))
    read = read // BYTES_PER_TOKEN
    output = written // BYTES_PER_TOKEN
    return p.Usage(cache_write=read, output=output, total=read + output, input=read)


def _size(message: OmniMessage) -> int:
    payload = message.payload
    match payload:
        case p.Text(text=text) | p.Thinking(thinking=text) | p.ToolCall(arguments=text):
            return _bytes(text)
        case p.ToolCallOutput(output=text):
            return _bytes(text)
    return 0


def _bytes(text: str) -> int:
    return len(text.encode(errors="replace"))
