"""What the agent loop asks of a model: one request in, one stream of messages out.

Errors (all carry the words people see; `status` goes into `request_end`):

    LLMError                 failed, tried again: 5xx, 429, 529, connection refused
     +- CredentialsError     auth, never tried again: 401, 403, no key configured
     +- InvalidRequestError  failed, never tried again unchanged: 400, 404, 413, 422
     +- RequestTimeoutError  timeout: the provider was silent for too long
     +- MalformedStreamError malformed: the stream ended without its end, bad JSON
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from traces_app.omnimessage import OmniMessage, StopReason
from traces_app.omnimessage.payloads import Usage


class LLMError(Exception):
    """A request did not succeed; the text names the underlying cause."""

    status = StopReason.FAILED
    is_retryable = True


class CredentialsError(LLMError):
    """The provider rejects the key, or there is none; the text says what to set."""

    status = StopReason.AUTH
    is_retryable = False


class InvalidRequestError(LLMError):
    """The provider calls the request invalid; sending it again cannot help.

    `is_too_long`: the conversation exceeds what the model can take.
    """

    is_retryable = False

    def __init__(self, message: str, *, is_too_long: bool = False) -> None:
        super().__init__(message)
        self.is_too_long = is_too_long


class RequestTimeoutError(LLMError):
    """The provider said nothing within the request's idle timeout."""

    status = StopReason.TIMEOUT


class MalformedStreamError(LLMError):
    """The stream broke off, or held what is not of the provider's protocol."""

    status = StopReason.MALFORMED


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    """Everything a model gets to see for one answer."""

    system_prompt: str
    messages: Sequence[OmniMessage]  # complete model messages, oldest first
    tools: Sequence[Mapping[str, Any]] = ()  # name, description, parameters
    purpose: Literal["turn", "summary", "title"] = "turn"
    attempt: int = 1  # 1 for the first attempt at this input
    max_tokens: int | None = None
    thinking_level: str | None = None  # none|low|medium|high|xhigh|max, None: default


class LLMClient(Protocol):
    """One model of one provider.

    `stream` yields, in the order of the wire: partial_text, partial_thinking and
    partial_tool_call pieces (start, deltas, stop); the complete message right after
    its stop; a tool_call only once it is complete (behaviour: its arguments ended
    and the next call began or the stream finished properly); at most one `Usage`.
    It returns when the stream ended as the protocol says, else raises `LLMError`;
    complete calls yielded before a raise stand, an unfinished one was never a call.
    """

    provider: str
    model_id: str
    is_vision: bool
    context_window: int

    def stream(
        self, request: ModelRequest
    ) -> AsyncGenerator[OmniMessage | Usage, None]:
        """Ask the model; closing the generator closes the connection."""
        ...

    async def aclose(self) -> None:
        """Release the connections."""
        ...
