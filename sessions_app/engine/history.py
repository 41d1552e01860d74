"""The fold of a Trace: what the model sees next, and what is still open.

Responsibilities
  - Keep the committed conversation: only requests that ended `completed` count,
    their calls paired with outputs in call order.
  - Keep the pending input: what no completed request has answered yet. It is sent
    again until one does.
  - Keep what unfinished requests produced, for the block that tells of it.
  - Know calls without output, decisions, starts, ids in use, token counts.

Flow
  1. User messages and outputs of the last request gather as pending input.
  2. `request_begin` opens a request; what the model writes is set aside.
  3. `request_end completed` moves pending input and answer into the conversation;
     any other status moves the answer to what is unfinished.
  4. A retry or carry-over block tells of the unfinished and joins the pending input.
  5. A summary after `compaction_end completed` replaces the conversation.

The loop feeds every message it records, recovery feeds the stored ones: both give
equal histories. Nothing here records, decides or runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Self

from sessions_app.engine.messages import (
    call_id,
    has_images,
    without_images,
)
from traces_app.omnimessage import OmniMessage
from traces_app.omnimessage import payloads as p
from traces_app.omnimessage.money import add_usd


@dataclass(slots=True)
class History:
    """What a session's Trace means for its next request."""

    decided: dict[str, p.ApprovalDecision] = field(default_factory=dict)
    started: set[str] = field(default_factory=set)
    call_ids: set[str] = field(default_factory=set)  # every id ever used
    pending: list[OmniMessage] = field(default_factory=list)  # user messages
    unfinished: list[OmniMessage] = field(default_factory=list)
    usage: p.Usage = field(default_factory=p.Usage)  # of the whole session
    spent_usd: float | None = None  # as far as the models had a price
    context_tokens: int = 0  # size of the last completed request
    turns: int = 0  # completed requests since a person last wrote
    segment_turns: int = 0  # completed requests in this model context
    tools: tuple[Mapping[str, p.Json], ...] | None = None  # as last recorded
    _context: list[OmniMessage] = field(default_factory=list)
    _calls: list[OmniMessage] = field(default_factory=list)  # of the last request
    _outputs: dict[str, OmniMessage] = field(default_factory=dict)
    _request: list[OmniMessage] | None = None  # produced by the open request
    _sent: int = 0  # how many pending messages the open request was given
    _compaction: Literal["open", "asking", "done"] | None = None
    _awaits_usage: bool = False

    @classmethod
    def from_messages(cls, messages: Iterable[OmniMessage]) -> Self:
        """Fold complete messages and events in Trace order."""
        history = cls()
        for message in messages:
            history.feed(message)
        return history

    def feed(self, message: OmniMessage) -> None:
        """Take in the next recorded message; kinds without meaning are ignored."""
        fold = _FOLDS.get(type(message.payload))
        if fold is not None and not message.origin:
            fold(self, message, message.payload)

    @property
    def messages(self) -> list[OmniMessage]:
        """The input of the next request, oldest first."""
        return [*self.conversation, *self.pending]

    @property
    def conversation(self) -> list[OmniMessage]:
        """The committed messages and the outputs that answer their last calls."""
        return [*self._context, *self._ordered_outputs()]

    @property
    def has_input(self) -> bool:
        """Whether there is anything the model has not answered."""
        return bool(self._calls or self.pending)

    @property
    def has_unfinished(self) -> bool:
        """Whether a cut request produced something worth telling."""
        return any(not isinstance(m.payload, _THOUGHTS) for m in self.unfinished)

    @property
    def open_calls(self) -> list[OmniMessage]:
        """Calls of the last completed request without output, in call order."""
        return [call for call in self._calls if call_id(call) not in self._outputs]

    @property
    def orphaned_calls(self) -> list[OmniMessage]:
        """Calls without output of requests that did not complete."""
        produced = [*self.unfinished, *(self._request or [])]
        answered = {call_id(m) for m in produced if _is_output(m)}
        return [m for m in produced if _is_call(m) and call_id(m) not in answered]

    @property
    def is_request_open(self) -> bool:
        """Whether a request began and has not ended."""
        return self._request is not None or self._compaction == "asking"

    @property
    def is_compacting(self) -> bool:
        """Whether a compaction began and has not ended."""
        return self._compaction in ("open", "asking")

    def _ordered_outputs(self) -> list[OmniMessage]:
        ids = [call_id(call) for call in self._calls]
        return [self._outputs[i] for i in ids if i in self._outputs]

    def _on_text(self, message: OmniMessage, payload: p.Text) -> None:
        if payload.role == "assistant":
            if payload.synthetic is None:
                self._on_answer(message, payload)
            return
        match payload.synthetic:
            case "notice":
                pass
            case "retry":
                self.pending = [m for m in self.pending if not _is(m, "retry")]
                self.pending.append(message)
            case "carry_over":
                images = [m for m in self.pending if not _is_text(m)]
                self.pending = [message, *images]
                self.unfinished = []
            case "summary":
                self._start_segment(message)
            case "images_removed":
                self._remove_images()
                self.pending.append(message)
            case synthetic:
                self.pending.append(message)
                self.turns = self.turns if synthetic else 0

    def _on_image(
        self, message: OmniMessage, payload: p.ImageUrl | p.InlineData
    ) -> None:
        if payload.role == "user":
            self.pending.append(message)
        else:
            self._on_answer(message, payload)

    def _on_answer(self, message: OmniMessage, _: p.Payload) -> None:
        if self._request is not None:
            self._request.append(message)

    def _on_call(self, message: OmniMessage, payload: p.ToolCall) -> None:
        self.call_ids.add(payload.tool_call_id)
        self._on_answer(message, payload)

    def _on_output(self, message: OmniMessage, payload: p.ToolCallOutput) -> None:
        wanted = payload.tool_call_id
        if any(call_id(call) == wanted for call in self.open_calls):
            self._outputs[wanted] = message
        elif any(call_id(call) == wanted for call in self.orphaned_calls):
            part = self.unfinished if self._request is None else self._request
            part.append(message)

    def _on_request_begin(self, _: OmniMessage, __: p.RequestBegin) -> None:
        if self._compaction == "open":
            self._compaction = "asking"
            return
        self._drop_request()
        self._compaction = None
        self._request = []
        self._sent = len(self.pending)

    def _on_request_end(self, _: OmniMessage, payload: p.RequestEnd) -> None:
        self._awaits_usage = self._request is not None
        if self._compaction == "asking":
            self._compaction = "open"
        elif payload.status == p.StopReason.COMPLETED:
            self._commit_request()
        else:
            self._drop_request()

    def _commit_request(self) -> None:
        produced = self._request or []
        answer = [m for m in produced if not _is_output(m)]
        sent, self.pending = self.pending[: self._sent], self.pending[self._sent :]
        self._context += [*self._ordered_outputs(), *sent, *answer]
        self._calls = [m for m in answer if _is_call(m)]
        self._outputs = {call_id(m): m for m in produced if _is_output(m)}
        self._request = None
        self.unfinished = []
        self.turns += 1
        self.segment_turns += 1

    def _drop_request(self) -> None:
        self.unfinished += self._request or []
        self._request = None

    def _on_usage(self, _: OmniMessage, payload: p.TokenUsage) -> None:
        self.usage = self.usage + payload.request
        self.spent_usd = add_usd(self.spent_usd, payload.request_usd)
        if self._awaits_usage and payload.tool_call_id is None:
            self.context_tokens = payload.request.total
            self._awaits_usage = False

    def _on_decision(self, _: OmniMessage, payload: p.ApprovalDecision) -> None:
        self.decided[payload.tool_call_id] = payload

    def _on_started(self, _: OmniMessage, payload: p.ToolStarted) -> None:
        self.started.add(payload.tool_call_id)

    def _on_tools(self, _: OmniMessage, payload: p.ToolListReady) -> None:
        self.tools = payload.tools

    def _on_compaction_begin(self, _: OmniMessage, __: p.CompactionBegin) -> None:
        self._drop_request()
        self._compaction = "open"

    def _on_compaction_end(self, _: OmniMessage, payload: p.CompactionEnd) -> None:
        is_done = payload.status == p.StopReason.COMPLETED
        self._compaction = "done" if is_done else None

    def _start_segment(self, summary: OmniMessage) -> None:
        # Only now is the old context given up: a Trace that was cut between the
        # end of a compaction and its summary still has everything.
        if self._compaction != "done":
            return
        self._compaction = None
        self._context, self._calls, self._outputs = [], [], {}
        self.pending = [summary, *self.pending]
        self.context_tokens = self.segment_turns = 0

    def _remove_images(self) -> None:
        """Take out those of the input; the older ones only when it has none."""
        is_new = any(map(has_images, [*self._outputs.values(), *self.pending]))
        self.pending = without_images(self.pending)
        outputs = without_images(self._outputs.values())
        self._outputs = {call_id(output): output for output in outputs}
        if not is_new:
            self._context = without_images(self._context)


def _is(message: OmniMessage, synthetic: str) -> bool:
    return isinstance(message.payload, p.Text) and message.payload.synthetic == (
        synthetic
    )


def _is_text(message: OmniMessage) -> bool:
    return isinstance(message.payload, p.Text)


def _is_call(message: OmniMessage) -> bool:
    return isinstance(message.payload, p.ToolCall)


def _is_output(message: OmniMessage) -> bool:
    return isinstance(message.payload, p.ToolCallOutput)


_THOUGHTS = (p.Thinking, p.InlineThinking)
_FOLDS: Mapping[type[p.Payload], Callable[[History, OmniMessage, Any], None]] = {
    p.Text: History._on_text,
    p.Thinking: History._on_answer,
    p.InlineThinking: History._on_answer,
    p.InlineData: History._on_image,
    p.ImageUrl: History._on_image,
    p.ToolCall: History._on_call,
    p.ToolCallOutput: History._on_output,
    p.RequestBegin: History._on_request_begin,
    p.RequestEnd: History._on_request_end,
    p.TokenUsage: History._on_usage,
    p.ApprovalDecision: History._on_decision,
    p.ToolStarted: History._on_started,
    p.ToolListReady: History._on_tools,
    p.CompactionBegin: History._on_compaction_begin,
    p.CompactionEnd: History._on_compaction_end,
}
