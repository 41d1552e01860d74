"""The close-out of one call: frames, cut, markers, images, the complete message.

Whatever a tool yields goes through `feed`; what it left behind becomes, in `finish`,
the trailing markers in their fixed order and the one complete output.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

from sessions_app.environment.tool import Artifact, ToolContext, ToolResult
from sessions_app.environment.truncation import HeadText, cut_marker
from traces_app.omnimessage import OmniMessage, StopReason, tool_call_output
from traces_app.omnimessage.payloads import (
    EventType,
    PartialToolCallOutput,
    ToolCallOutput,
)

logger = logging.getLogger(__name__)

_OF_CALLS = ("completed", "failed", "aborted", "timeout")
NO_OUTPUT = "[no output]"
INTERRUPTED = "[interrupted: tool aborted by user]"


def timeout_marker(timeout_ms: int) -> str:
    """Return the marker of a call that took longer than it may."""
    return f"[timeout: the tool did not end within {timeout_ms} ms]"


def error_marker(text: str) -> str:
    """Return the marker of a call that failed inside the tool."""
    return f"[tool error] {text}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """How a call ended."""

    stop_reason: StopReason
    ending: str | None = None  # the marker of an interrupt, a timeout or an error
    artifact: Artifact | None = None


class Refused(Exception):
    """A call that cannot begin."""

    def __init__(self, stop_reason: StopReason, ending: str) -> None:
        super().__init__(ending)
        self.verdict = Verdict(stop_reason=stop_reason, ending=ending)

    @classmethod
    def because(cls, text: str) -> Self:
        """Return the refusal of a call that is wrong in itself."""
        return cls(StopReason.FAILED, error_marker(text))


def plain(text: str) -> str:
    """Return text that every database and every JSON parser can hold."""
    text = text.replace("\0", "\u2400")
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


class CloseOut:
    """Collects what one call produced and turns it into its frames."""

    def __init__(self, ctx: ToolContext, *, cap: int) -> None:
        self._tool_call_id = ctx.tool_call_id
        self._head = HeadText(cap)
        self._started = time.monotonic()
        self._images: list[str] = []
        self.result = ToolResult()
        self._details = ctx.details

    @property
    def is_cut(self) -> bool:
        """Return whether the text the model gets lacks something that was produced."""
        return self._produced > self._head.kept

    @property
    def _produced(self) -> int:
        told = self._details.get("output_chars")
        return told if isinstance(told, int) else self._head.produced

    @property
    def needs_artifact(self) -> bool:
        """Return whether a marker of ours must say where the whole text is."""
        return self.is_cut and not self._details.get("truncated")

    def start(self) -> OmniMessage:
        """Return the frame that opens the stream."""
        return self._frame("start")

    def text_of(self, item: object) -> str:
        """Return the text that `item` adds; keep its images and its self-report."""
        if isinstance(item, str):
            return plain(item)
        if isinstance(item, ToolResult):
            self.result = item
            self._images.extend(item.images)
            return ""
        payload = item.payload if isinstance(item, OmniMessage) else None
        if isinstance(payload, PartialToolCallOutput):
            if payload.event_type != "delta":
                return ""
            self._images.extend(payload.images)
            return plain(payload.output)
        if isinstance(payload, ToolCallOutput):
            return self._complete(payload)
        kind = payload.KIND if payload else type(item).__name__
        logger.warning("a tool yielded %s, which is not its output; dropped", kind)
        return ""

    def _complete(self, payload: ToolCallOutput) -> str:
        """Take a complete output of the tool's own: what it adds to the deltas."""
        self.result = ToolResult(stop_reason=payload.stop_reason)
        self._images.extend(payload.images)
        so_far = self._head.produced
        return plain(payload.output)[so_far:]

    def delta(self, text: str) -> OmniMessage | None:
        """Return the frame of more text, or None when nothing of it is kept."""
        kept = self._head.add(text)
        return self._frame("delta", output=kept) if kept else None

    def finish(self, verdict: Verdict) -> Iterator[OmniMessage]:
        """Return the closing frames, the complete output last."""
        text, stop_reason = self._head.text, verdict.stop_reason
        tail = self._tail(text, self._markers(verdict))
        if tail:
            yield self._frame("delta", output=tail)
        is_completed = stop_reason is StopReason.COMPLETED
        images = tuple(self._images) if is_completed else ()
        if images:
            yield self._frame("delta", images=images)
        yield self._frame("stop", stop_reason=stop_reason)
        details = {
            "truncated": self.is_cut,
            "output_chars": self._produced,
            "duration_ms": round((time.monotonic() - self._started) * 1000),
            **self._details,
        }
        if verdict.artifact is not None:
            details["artifact"] = verdict.artifact.to_details()
        yield tool_call_output(
            self._tool_call_id,
            text + tail,
            stop_reason,
            images=images,
            details=details,
        )

    def _markers(self, verdict: Verdict) -> list[str]:
        markers = []
        if self.needs_artifact:
            kept = self._head.kept
            markers.append(
                cut_marker(
                    produced=self._produced, kept=kept, artifact=verdict.artifact
                )
            )
        if self.result.note:
            markers.append(plain(self.result.note))
        if verdict.ending:
            markers.append(plain(verdict.ending))
        return markers

    @staticmethod
    def _tail(text: str, markers: list[str]) -> str:
        if not markers:
            return "" if text else NO_OUTPUT
        tail = "\n".join(markers)
        return tail if not text or text.endswith("\n") else "\n" + tail

    def _frame(
        self,
        event_type: EventType,
        *,
        output: str = "",
        images: tuple[str, ...] = (),
        stop_reason: StopReason | None = None,
    ) -> OmniMessage:
        payload = PartialToolCallOutput(
            role="user",
            event_type=event_type,
            tool_call_id=self._tool_call_id,
            output=output,
            images=images,
            stop_reason=stop_reason,
        )
        return OmniMessage(payload=payload)


def is_passed_through(item: object) -> bool:
    """Return whether a message comes from a child and is not this tool's output."""
    return isinstance(item, OmniMessage) and bool(item.origin)


def self_reported(result: ToolResult) -> StopReason:
    """Return how the tool says it ended; an unknown word counts as failed."""
    if result.stop_reason is None:
        return StopReason.COMPLETED
    if result.stop_reason not in _OF_CALLS:
        logger.warning("a tool reports stop_reason %r", result.stop_reason)
        return StopReason.FAILED
    return StopReason(result.stop_reason)
