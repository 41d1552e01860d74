"""The demo model's language: a typed message becomes parts, a part becomes steps."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

StepKind = Literal["call", "say", "think", "sleep", "fail", "greet"]
FAILURES = ("auth", "timeout", "malformed", "failed")


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One line to play."""

    kind: StepKind
    text: str = ""  # what is said or thought, the call's arguments, the failure
    name: str = ""  # the tool of a call
    seconds: float = 0.0


def parse(text: str) -> list[list[Step]]:
    """Return the parts of a message; each but the last holds a call.

    `then` waits for results, so behind lines without a call there is nothing to
    wait for and the rest belongs to the same part.
    """
    parts: list[list[Step]] = [[]]
    has_greeted = False
    for raw in text.split("\n"):
        line = raw.strip()
        if line == "then":
            if has_call(parts[-1]):
                parts.append([])
        elif line:
            step = _step(line)
            if step.kind != "greet" or not has_greeted:
                parts[-1].append(step)
            has_greeted = has_greeted or step.kind == "greet"
    return [part for part in parts if part]


def has_call(steps: list[Step]) -> bool:
    """Return whether the steps ask for a tool."""
    return any(step.kind == "call" for step in steps)


def _step(line: str) -> Step:
    word, rest = _cut(line)
    read = _COMMANDS.get(word)
    return read(rest) if read else Step(kind="greet")


def _cut(text: str) -> tuple[str, str]:
    word, *rest = text.split(maxsplit=1) or [""]
    return word, rest[0] if rest else ""


def _wrong(what: str) -> Step:
    return Step(kind="say", text=what)


def _call(rest: str) -> Step:
    name, arguments = _cut(rest)
    usage = 'Write: `call NAME {"key": "value"}`, all on one line.'
    if not name:
        return _wrong(f"This is no valid call: the tool's name is missing. {usage}")
    if not arguments:
        return _wrong(f"This is no valid call: {name} has no arguments. {usage}")
    # An object with a fault in it passes on purpose: a model may write such a call
    # too, and a person must be able to see what becomes of one.
    if not (arguments.startswith("{") or _is_json(arguments)):
        return _wrong(
            f"This is no valid call: the arguments of {name} are not JSON. {usage}"
        )
    return Step(kind="call", name=name, text=arguments)


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _shell(rest: str) -> Step:
    if not rest:
        return _wrong("This is no valid call: the command is missing. Write: `$ ls`.")
    arguments = json.dumps({"cmd": rest}, ensure_ascii=False)
    return Step(kind="call", name="exec_command", text=arguments)


def _sleep(rest: str) -> Step:
    try:
        seconds = float(rest)
    except ValueError:
        seconds = math.nan
    if not (math.isfinite(seconds) and seconds >= 0):
        return _wrong(f"`sleep` needs a number of seconds, not {rest!r}.")
    return Step(kind="sleep", seconds=seconds)


def _fail(rest: str) -> Step:
    if rest not in FAILURES:
        return _wrong(f"`fail` needs one of {', '.join(FAILURES)}, not {rest!r}.")
    return Step(kind="fail", text=rest)


_COMMANDS: dict[str, Callable[[str], Step]] = {
    "call": _call,
    "$": _shell,
    "say": lambda rest: Step(kind="say", text=rest),
    "think": lambda rest: Step(kind="think", text=rest),
    "sleep": _sleep,
    "fail": _fail,
}
