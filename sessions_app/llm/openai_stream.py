"""Reads the chunks of an OpenAI-compatible chat completion.

The finish reasons `tool_calls` and `stop` complete every call. Any other (`length`,
`content_filter`) cuts the answer: text stands as far as it came and the request is
completed, but a call that was still open was never a call. Then, and when nothing
but thoughts came, the request counts as malformed: completed, it would end the task
as if the model had wanted nothing more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from sessions_app.llm.client import LLMError, MalformedStreamError
from sessions_app.llm.openai_calls import Calls
from sessions_app.llm.openai_request import THINKING_FIELDS
from sessions_app.llm.pieces import TextPart
from sessions_app.llm.wire_errors import cut_answer
from traces_app.omnimessage import OmniMessage
from traces_app.omnimessage.payloads import Usage

LINGER_S = 0.1
USAGE_LINGER_S = 3.0
_COMPLETES_CALLS = ("tool_calls", "stop", "function_call")


class ChatStream:
    """Turns the chunks of one answer into messages."""

    def __init__(self) -> None:
        self._finish_reason = ""
        self._part: TextPart | None = None
        self._thinking_field = THINKING_FIELDS[0]
        self._calls = Calls()
        self._usage: Mapping[str, Any] = {}
        self._has_text = False

    @property
    def linger_s(self) -> float | None:
        """Return how long to wait for usage and `[DONE]`, which some never send."""
        if not self._finish_reason:
            return None
        return LINGER_S if self._usage else USAGE_LINGER_S

    def feed(self, chunk: Mapping[str, Any]) -> Iterator[OmniMessage]:
        """Take one chunk."""
        self._usage = chunk.get("usage") or self._usage
        for choice in chunk.get("choices") or ():
            if self._finish_reason or choice.get("index"):
                continue
            # Servers that do not stream may still send their message this way.
            yield from self._delta(choice.get("delta") or choice.get("message") or {})
            self._finish_reason = choice.get("finish_reason") or ""
            if self._finish_reason:
                yield from self._close_text()
            if self._finish_reason in _COMPLETES_CALLS:
                yield from self._calls.complete_all()

    def end(self) -> Iterator[Usage]:
        """Yield the usage; raises `LLMError` if the answer is not whole."""
        if not self._finish_reason:
            raise MalformedStreamError("the stream ended without a finish reason")
        if self._usage:
            yield _usage(self._usage)
        if self._finish_reason == "error":
            raise LLMError("the provider broke off its answer because of an error")
        open_name = self._calls.open_name
        is_empty = not (self._has_text or self._calls)
        if self._finish_reason not in _COMPLETES_CALLS and (
            is_empty or open_name is not None
        ):
            raise cut_answer(self._finish_reason, tool=open_name)

    def _delta(self, delta: Mapping[str, Any]) -> Iterator[OmniMessage]:
        for name in THINKING_FIELDS:
            if _plain(delta.get(name)):
                self._thinking_field = name
                yield from self._text("thinking", _plain(delta[name]))
                break  # some servers send the same thought under both names
        for name in ("content", "refusal"):
            yield from self._text("text", _plain(delta.get(name)))
        for fragment in delta.get("tool_calls") or ():
            yield from self._close_text()
            yield from self._calls.feed(fragment)

    def _text(
        self, kind: Literal["text", "thinking"], text: str
    ) -> Iterator[OmniMessage]:
        if not text:
            return
        if self._part is None or self._part.kind != kind:
            yield from self._close_text()
            self._part = TextPart(kind)
        self._has_text = self._has_text or kind == "text"
        yield from self._part.delta(text)

    def _close_text(self) -> Iterator[OmniMessage]:
        part, self._part = self._part, None
        if part is not None:
            is_text = part.kind == "text"
            field = None if is_text else {"field": self._thinking_field}
            yield from part.close(fidelity=field)


def _plain(content: Any) -> str:
    """Return the text of a content, which some servers send as a list of parts."""
    if isinstance(content, list):
        parts = (part.get("text") for part in content if isinstance(part, dict))
        return "".join(text for text in parts if isinstance(text, str))
    return content if isinstance(content, str) else ""


def _usage(usage: Mapping[str, Any]) -> Usage:
    """Count every input token that was not read from the cache as written to it."""
    details = usage.get("prompt_tokens_details") or {}
    cached = details.get("cached_tokens") or usage.get("prompt_cache_hit_tokens") or 0
    prompt = max(usage.get("prompt_tokens") or 0, cached)
    output = usage.get("completion_tokens") or 0
    return Usage(
        cache_read=cached,
        cache_write=prompt - cached,
        output=output,
        total=prompt + output,
        input=prompt - cached,
    )
