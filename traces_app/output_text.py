"""The text of an output as a page shows it: whole, or head and tail with a gap."""

from __future__ import annotations

from dataclasses import dataclass

HEAD_LINES = 200
TAIL_LINES = 300
HEAD_CHARACTERS = 24_000
TAIL_CHARACTERS = 36_000


@dataclass(frozen=True, slots=True, kw_only=True)
class FoldedText:
    """An output; `tail` is empty when `head` is all of it."""

    head: str
    tail: str = ""
    gap: str = ""  # in words: what lies between


def fold(text: str) -> FoldedText:
    """Return the text whole if it is short, else its two ends."""
    lines = text.count("\n") + 1
    is_short = len(text) <= HEAD_CHARACTERS + TAIL_CHARACTERS
    if is_short and lines <= HEAD_LINES + TAIL_LINES:
        return FoldedText(head=text)
    head, tail = head_of(text), tail_of(text)
    between = text[len(head) : len(text) - len(tail)]
    count = between.count("\n")
    if count < 2:
        return FoldedText(
            head=head, tail=tail, gap=f"{len(between):,} characters between"
        )
    return FoldedText(head=head, tail=tail, gap=f"{count:,} lines between")


def head_of(text: str) -> str:
    """Return the first lines, the last one whole unless it is too long."""
    cut = text[:HEAD_CHARACTERS]
    end = _nth_newline(cut, HEAD_LINES)
    if end is None and len(cut) < len(text):
        end = cut.rfind("\n") + 1 or None
    return cut if end is None else cut[:end]


def tail_of(text: str) -> str:
    """Return the last lines, the first one whole unless it is too long."""
    cut = text[-TAIL_CHARACTERS:]
    lines = cut.split("\n")
    if len(lines) > TAIL_LINES:
        return "\n".join(lines[-TAIL_LINES:])
    if len(cut) < len(text) and len(lines) > 1 and text[-len(cut) - 1] != "\n":
        return "\n".join(lines[1:])
    return cut


def _nth_newline(text: str, count: int) -> int | None:
    position = 0
    for _ in range(count):
        position = text.find("\n", position) + 1
        if not position:
            return None
    return position
