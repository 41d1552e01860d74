"""Arguments of a call as a person must see them: every character, nothing hidden.

Characters that could mislead (control, format, bidirectional and blank look-alikes,
long runs of blanks) become visible escapes. What is no valid JSON object is shown
as the raw text it is.
"""

from __future__ import annotations

import json
import re
import unicodedata
from dataclasses import dataclass, replace
from typing import Any, Literal

FOLD_LINES = 40  # more lines, or more bytes, must be opened before they are approved
FOLD_BYTES = 4096
HEAD_LINES = 12  # of a folded value
HEAD_CHARACTERS = 1200
LINE_CHARACTERS = 80  # a command that fits into one line of a card
BLANK_RUN = 20  # blanks inside a line
INDENT_RUN = 60  # blanks at its beginning

_HIDDEN_CATEGORIES = {"Cc", "Cf", "Co", "Cn", "Cs", "Zl", "Zp"}
# Letters and marks that draw nothing, and spaces that are not the space bar's.
_BLANK_LOOKING = {*"\u115f\u1160\u3164\uffa0\u2800\u034f\u180b\u180c\u180d\u180f"}
_VARIATION_SELECTORS = re.compile("[\ufe00-\ufe0f\U000e0100-\U000e01ef]")
_PRINTABLE_ASCII = re.compile(r"[\t\x20-\x7e]*")
_RUNS = re.compile(rf"(?:(?<=\S)[ \t]{{{BLANK_RUN},}}|^[ \t]{{{INDENT_RUN},}})")


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A piece of a line; an escape stands for what could mislead."""

    kind: Literal["text", "escape", "mark"]  # a mark ends a line: a newline to see
    text: str


Line = tuple[Span, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """One argument; `rest` is folded away when the value is long."""

    name: Line
    head: tuple[Line, ...]
    rest: tuple[Line, ...] = ()
    is_line_cut: bool = False  # `rest` goes on with the last line of `head`

    @property
    def count(self) -> int:
        """Return the number of lines in all."""
        return len(self.head) + len(self.rest) - self.is_line_cut


@dataclass(frozen=True, slots=True, kw_only=True)
class Arguments:
    """All arguments of a call: a command apart, the others as rows."""

    command: Value | None = None
    rows: tuple[Value, ...] = ()
    problem: str = ""  # why the text is shown raw
    escapes: int = 0
    summary: str = ""  # one line, for lists; may be cut by the page

    @property
    def is_folded(self) -> bool:
        """Return whether something must be opened to be read."""
        values = (self.command, *self.rows) if self.command else self.rows
        return any(value.rest for value in values)

    @property
    def needs_room(self) -> bool:
        """Return whether one line does not tell it all."""
        if self.command is None:
            return bool(self.rows)
        is_long = self.command.count > 1 or len(self.summary) > LINE_CHARACTERS
        return bool(is_long or self.rows or self.escapes)


def read_arguments(name: str, text: str) -> Arguments:
    """Return what the argument text of a call to the tool `name` holds."""
    try:
        values = _parse(text)
    except ValueError as error:
        raw = _value("arguments", text)
        return Arguments(
            rows=(raw,),
            problem=f"These arguments are no JSON object ({error}): shown as raw text.",
            escapes=_count(raw),
            summary=_one_line(text),
        )
    command = None
    rest = dict(values)
    if name == "exec_command" and isinstance(values.get("cmd"), str):
        command = _value("cmd", rest.pop("cmd"))
    rows = tuple(_row(key, _shown(value)) for key, value in rest.items())
    return Arguments(
        command=command,
        rows=rows,
        escapes=sum(map(_count, (command, *rows) if command else rows)),
        summary=_summary(name, values),
    )


def spell(text: str) -> Line:
    """Return one line of text with what is hidden made visible."""
    if _PRINTABLE_ASCII.fullmatch(text) and not _RUNS.search(text):
        return (Span(kind="text", text=text),)
    spans: list[Span] = []
    position = 0
    for start, stop, shown in _escapes(text):
        if start > position:
            spans.append(Span(kind="text", text=text[position:start]))
        spans.append(Span(kind="escape", text=shown))
        position = stop
    if position < len(text) or not spans:
        spans.append(Span(kind="text", text=text[position:]))
    return tuple(spans)


def _escapes(text: str) -> list[tuple[int, int, str]]:
    found = [
        (match.start(), match.end(), f"[{len(match.group())} blanks]")
        for match in _RUNS.finditer(text)
    ]
    found += [
        (index, index + 1, f"\\u{{{ord(character):x}}}")
        for index, character in enumerate(text)
        if _is_hidden(character)
    ]
    return sorted(found)


def _is_hidden(character: str) -> bool:
    if " " <= character <= "~" or character == "\t":
        return False
    category = unicodedata.category(character)
    return (
        category in _HIDDEN_CATEGORIES
        or category == "Zs"
        or character in _BLANK_LOOKING
        or bool(_VARIATION_SELECTORS.match(character))
    )


def _parse(text: str) -> dict[str, Any]:
    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        result = dict(pairs)
        if len(result) < len(pairs):
            raise ValueError("a key stands in it twice")
        return result

    try:
        values = json.loads(text, object_pairs_hook=once)
    except (json.JSONDecodeError, RecursionError) as error:
        raise ValueError("it cannot be parsed") from error
    if not isinstance(values, dict):
        raise ValueError("it is another kind of value")
    return values


def _shown(value: Any) -> str:
    """Return a value as text; quotes tell a string that reads like another value."""
    if not isinstance(value, str):
        return json.dumps(value, ensure_ascii=False, indent=2)
    try:
        json.loads(value)
    except (ValueError, RecursionError):
        return value
    return json.dumps(value, ensure_ascii=False)


def _value(name: str, text: str) -> Value:
    lines = tuple(spell(line) for line in text.split("\n"))
    label = spell(name)
    if len(lines) <= FOLD_LINES and len(text.encode(errors="replace")) <= FOLD_BYTES:
        return Value(name=label, head=lines)
    head = text[:HEAD_CHARACTERS].split("\n")[:HEAD_LINES]
    stop = len("\n".join(head))
    rest = text[stop:]
    return Value(
        name=label,
        head=tuple(spell(line) for line in head),
        rest=tuple(spell(line) for line in rest.removeprefix("\n").split("\n")),
        is_line_cut=not rest.startswith("\n"),
    )


def _row(name: str, text: str) -> Value:
    """Return a value whose last newline is seen: it has no line numbers to tell."""
    if not text.endswith("\n"):
        return _value(name, text)
    value = _value(name, text[:-1])
    mark = Span(kind="mark", text="\\n")
    if value.rest:
        return replace(value, rest=_marked(value.rest, mark))
    return replace(value, head=_marked(value.head, mark))


def _marked(lines: tuple[Line, ...], mark: Span) -> tuple[Line, ...]:
    return (*lines[:-1], (*lines[-1], mark))


def _count(value: Value) -> int:
    lines = (value.name, *value.head, *value.rest)
    return sum(span.kind == "escape" for line in lines for span in line)


def _one_line(text: str) -> str:
    cut = " ".join(text[:400].split())
    return "".join(span.text for span in spell(cut))


def _summary(name: str, values: dict[str, Any]) -> str:
    """Return the arguments in one line: the telling one alone, or all of them."""
    for key in ("cmd", "prompt", "source"):
        if isinstance(values.get(key), str):
            return _one_line(values[key])
    if name == "input_command":
        chars = json.dumps(values.get("chars", ""), ensure_ascii=False)
        return _one_line(f"{values.get('process_id', '')} ← {chars}")
    return _one_line(
        ", ".join(f"{key}={_shown(value)}" for key, value in values.items())
    )
