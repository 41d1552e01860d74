"""Summarises a full context into a fresh one; the old one stays when that fails."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from sessions_app.engine.history import History
from sessions_app.engine.mending import clipped, is_too_long
from sessions_app.engine.model_requests import ModelRequests
from sessions_app.engine.options import LoopOptions
from sessions_app.engine.tape import Tape
from sessions_app.engine.turn import Answer, read
from sessions_app.environment.tool import AbortSignal
from traces_app.omnimessage import OmniMessage, StopReason, event, user_text
from traces_app.omnimessage import payloads as p

RESERVE_TOKENS = 2048  # of the model's window, for the answer
PROMPT = (
    "[block of the system, not written by the user] The context is full. Write a "
    "summary from which the work can go on without anything above: what the user "
    "wants, word for word where it matters; what was done and found, with paths, "
    "commands, ids of running processes and results; decisions and denials; what is "
    "open and comes next. Do not call tools. Put the summary between <summary> and "
    "</summary>."
)
_HEAD = (
    "[block of the system, not written by the user] The conversation so far was "
    "replaced by this summary of it, which you wrote:"
)
_TAGGED = re.compile(r"<summary>(.*?)</summary>", re.DOTALL | re.IGNORECASE)
_TAG = re.compile(r"</?summary>", re.IGNORECASE)


def why_compact(history: History, options: LoopOptions, window: int) -> str | None:
    """Return the reason for a compaction now, None when there is none."""
    if options.compaction_mode == "off" or not history.conversation:
        return None
    # Half of it where the window is hardly larger than the reserve.
    limits = [max(window - RESERVE_TOKENS, window // 2)] if window > 0 else []
    if options.max_context_length:
        limits.append(options.max_context_length)
    if limits and history.context_tokens >= min(limits):
        return "context_length"
    if 0 < (options.max_session_turns or 0) <= history.segment_turns:
        return "session_turns"
    return None


async def compact(
    reason: str, *, requests: ModelRequests, tape: Tape, stop: AbortSignal
) -> bool:
    """Replace the conversation by a summary; return whether that worked.

    Outputs that wait to be sent are summarised too; messages of the user that wait
    are not, they follow the summary as they are.
    """
    options = requests.options
    prompt = user_text(options.compaction_prompt or PROMPT, synthetic="notice")
    begin = p.CompactionBegin(reason=reason, mode=options.compaction_mode)
    await tape.record(event(begin), prompt)
    messages = [*tape.history.conversation, prompt]
    words = _Words()

    async def once(attempt: int) -> Answer:
        await tape.record(event(p.RequestBegin(attempt=attempt)))
        words.clear()
        request = requests.build(messages, attempt=attempt, purpose="summary")
        status, error = await read(requests.llm, request, stop=stop, take=words.take)
        answer = Answer(status=status, usage=words.usage, error=error)
        await requests.record_end(tape, answer, attempt)
        return answer

    answer, attempts = await requests.until_answered(once, stop=stop)
    if answer.error is not None and is_too_long(answer.error) and not stop.aborted:
        messages = clipped(messages)
        answer, _ = await requests.until_answered(once, stop=stop, first=attempts + 1)
    status = _outcome(answer, words, stop)
    end = event(p.CompactionEnd(status=status))
    if status is not StopReason.COMPLETED:
        await tape.record(end)
        return False
    # Both in one go: the fold gives up the old context for the summary only.
    text = f"{_HEAD}\n\n{words.summary}"
    await tape.record(end, user_text(text, synthetic="summary"))
    return True


def _outcome(answer: Answer, words: _Words, stop: AbortSignal) -> StopReason:
    if stop.aborted:
        return StopReason.ABORTED
    if answer.status is StopReason.COMPLETED and words.summary:
        return StopReason.COMPLETED
    return StopReason.FAILED


@dataclass(slots=True)
class _Words:
    """The text of an answer; a call in it makes the answer worthless."""

    usage: p.Usage | None = None
    texts: list[str] = field(default_factory=list)
    pieces: list[str] = field(default_factory=list)  # for a client without wholes
    has_call: bool = False

    def clear(self) -> None:
        """Forget a failed attempt; its usage was counted."""
        self.usage = None
        self.texts.clear()
        self.pieces.clear()
        self.has_call = False

    async def take(self, item: OmniMessage | p.Usage) -> None:
        if isinstance(item, p.Usage):
            self.usage = item
            return
        match item.payload:
            case p.Text(text=text):
                self.texts.append(text)
            case p.PartialText(text=text):
                self.pieces.append(text)
            case p.ToolCall():
                self.has_call = True

    @property
    def summary(self) -> str:
        """What stands between the tags, or all of it when nothing does."""
        if self.has_call:
            return ""
        text = "\n".join(self.texts) or "".join(self.pieces)
        tagged = "\n".join(_TAGGED.findall(text)).strip()
        return tagged or _TAG.sub("", text).strip()
