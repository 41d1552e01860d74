"""The second verdict: everything that began has its end, in the right order.

A pure fold over envelopes. What is open at the end is in progress, unless the record
itself says that it can get no end any more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from traces_app.findings import Finding


@dataclass(slots=True)
class _Call:
    seq: int
    name: str
    decision: str | None = None
    has_output: bool = False


@dataclass(slots=True)
class Completeness:
    """Feed it every event in order, then ask `finish`."""

    finding: Finding | None = None
    _calls: dict[str, _Call] = field(default_factory=dict)
    _open: dict[str, _Call] = field(default_factory=dict)
    _request: int | None = None  # seq of the request_begin that has no end yet
    _aborted_at: int | None = None  # seq of an abort that no request followed
    _next: int = 1

    def feed(self, seq: int, kind: str, envelope: Mapping[str, Any]) -> None:
        """Take the next event; only the first thing that is wrong is kept."""
        if seq != self._next:
            self._found(self._next, f"event #{self._next} is missing")
        elif seq == 1 and kind != "session_meta":
            self._found(1, "the first event is no session_meta")
        self._next = seq + 1
        step = _STEPS.get(kind)
        if step is None or envelope.get("origin"):
            return
        try:
            step(self, seq, envelope["payload"])
        except (KeyError, TypeError):  # somebody changed it to what is no message
            self._found(seq, f"the body of event #{seq} cannot be read")

    def finish(self, *, may_go_on: bool) -> str:
        """Close the fold; return in words what is still in progress."""
        if self._next == 1:
            self._found(1, "the record holds no event")
        what = self._what_is_open()
        if what and self._aborted_at is not None:
            what = f"{what}, though the run was aborted at #{self._aborted_at}"
            self._found(self._first_open(), what)
        elif what and not may_go_on:
            self._found(self._first_open(), f"{what}, and the record does not go on")
        return "" if self.finding else what

    def _found(self, seq: int, sentence: str) -> None:
        if self.finding is None:
            self.finding = Finding(seq=seq, sentence=sentence)

    def _what_is_open(self) -> str:
        if self._request is not None:
            return f"the request begun at #{self._request} has not ended"
        for tool_call_id, call in self._open.items():
            lack = "decision" if call.decision is None else "output"
            return f"the call {tool_call_id} ({call.name}, #{call.seq}) has no {lack}"
        return ""

    def _first_open(self) -> int:
        if self._request is not None:
            return self._request
        return next(iter(self._open.values())).seq

    def _request_begin(self, seq: int, _: Mapping[str, Any]) -> None:
        what = self._what_is_open()
        if what:
            self._found(self._first_open(), f"{what} before the next request at #{seq}")
        self._request = seq
        self._aborted_at = None

    def _request_end(self, seq: int, _: Mapping[str, Any]) -> None:
        if self._request is None:
            self._found(seq, f"#{seq} ends a request that never began")
        self._request = None

    def _tool_call(self, seq: int, payload: Mapping[str, Any]) -> None:
        tool_call_id = payload["tool_call_id"]
        if tool_call_id in self._calls:
            self._found(seq, f"the call {tool_call_id} stands twice in the record")
        call = _Call(seq, payload["name"])
        self._calls[tool_call_id] = self._open[tool_call_id] = call

    def _decision(self, seq: int, payload: Mapping[str, Any]) -> None:
        tool_call_id = payload["tool_call_id"]
        call = self._calls.get(tool_call_id)
        if call is None:
            self._found(seq, f"#{seq} decides a call that is not in the record")
        elif call.decision is not None:
            self._found(seq, f"the call {tool_call_id} was decided twice")
        elif call.has_output:
            self._found(seq, f"the call {tool_call_id} was decided after its output")
        else:
            call.decision = payload["decision"]

    def _started(self, seq: int, payload: Mapping[str, Any]) -> None:
        tool_call_id = payload["tool_call_id"]
        call = self._calls.get(tool_call_id)
        if call is None or call.decision is None:
            self._found(seq, f"the call {tool_call_id} was started undecided")
        elif call.decision != "allow":
            self._found(seq, f"the call {tool_call_id} was denied, and started")

    def _output(self, seq: int, payload: Mapping[str, Any]) -> None:
        tool_call_id = payload["tool_call_id"]
        call = self._calls.get(tool_call_id)
        if call is None:
            self._found(
                seq, f"#{seq} is the output of a call that is not in the record"
            )
            return
        if call.has_output:
            self._found(seq, f"the call {tool_call_id} has two outputs")
        elif call.decision is None:
            self._found(seq, f"the call {tool_call_id} has an output but no decision")
        call.has_output = True
        self._open.pop(tool_call_id, None)

    def _abort(self, seq: int, _: Mapping[str, Any]) -> None:
        self._aborted_at = seq

    def _damaged(self, seq: int, payload: Mapping[str, Any]) -> None:
        line, reason = payload["line"], payload["reason"]
        self._found(seq, f"line {line} of the imported file is damaged: {reason}")


_STEPS = {
    "request_begin": Completeness._request_begin,
    "request_end": Completeness._request_end,
    "tool_call": Completeness._tool_call,
    "approval_decision": Completeness._decision,
    "tool_started": Completeness._started,
    "tool_call_output": Completeness._output,
    "abort": Completeness._abort,
    "damaged": Completeness._damaged,
}
