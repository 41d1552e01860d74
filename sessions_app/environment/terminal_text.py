"""Turns the bytes of a pipe into plain text, resolving what a terminal would do.

Effects are resolved inside the open line only: CR, backspace, erase in line, cursor
left, right, column. All other control sequences are removed without effect. A line is
given out when LF closes it; what was given out is fixed, later overwrites start after
it. Any way of splitting the input gives the same text: half a character or half an
escape sequence is kept back as state, not as text to be scanned again.
"""

from __future__ import annotations

import codecs
import re
from enum import Enum, auto

# An open line longer than this is given out as it grows; a control sequence longer
# than this is taken for one that was never ended.
LIMIT = 4096  # characters

_SPECIAL = re.compile("[\x01-\x08\x0b-\x1f\x7f-\x9f]")
_COLOUR = re.compile("\x1b\\[[0-9;:]{0,64}m")
# What may stand in a CSI sequence before its final character.
_PARAMETERS = re.compile("[ -?]*")
_INTERMEDIATE = re.compile("[ -/]*")
_STRING_END = re.compile("[\n\x07\x18\x1a\x1b\x9c]")
_STRING_STARTERS = frozenset("]PX^_")
_C1 = {0x90: "P", 0x98: "X", 0x9B: "[", 0x9D: "]", 0x9E: "^", 0x9F: "_"}


Buffer = bytes | memoryview


class _State(Enum):
    TEXT = auto()
    ESCAPE = auto()  # after ESC
    CHARSET = auto()  # after ESC and an intermediate character
    SEQUENCE = auto()  # inside CSI
    STRING = auto()  # inside OSC, DCS, SOS, PM or APC


def _without_colours(text: str) -> str:
    """Remove colours at once where nothing but colours would be removed.

    Coloured logs are common; taking each sequence apart costs seven times as much.
    """
    plain, count = _COLOUR.subn("", text)
    return plain if count == text.count("\x1b") else text


class TerminalText:
    """The plain text of one pipe, and its line that is still open."""

    def __init__(self) -> None:
        self._half = b""  # of a character
        self._state = _State.TEXT
        self._length = 0  # of the unfinished control sequence
        self._parameters = ""
        self._line = ""  # unsent part of the open line
        self._cursor = 0  # column in it
        self._is_overwritten = False  # CR or backspace was seen in it
        self._is_long = False  # more than LIMIT of it was given out
        self._out: list[str] = []

    @property
    def open_line(self) -> str:
        """Return what of the open line was not given out yet."""
        return self._line

    @property
    def may_be_prompt(self) -> bool:
        """Return whether the open line looks final: nothing in it was overwritten."""
        return bool(self._line) and not self._is_overwritten

    def decode(self, block: Buffer, *, is_last: bool = False) -> str:
        """Return the characters that `block` completes, NUL made visible."""
        if self._half:
            block = self._half + bytes(block)
        text, used = codecs.utf_8_decode(block, "replace", is_last)
        self._half = bytes(block[used:])
        return text.replace("\0", "\u2400")

    @property
    def is_at_rest(self) -> bool:
        """Return whether text without controls would only follow what is there."""
        return (
            self._state is _State.TEXT
            and not self._half
            and self._cursor == len(self._line)
        )

    def feed_plain(self, text: str) -> str:
        """Take text without controls when `is_at_rest`; return what is given out."""
        end = text.rfind("\n") + 1
        if end:
            first = self._line + text[:end] if self._line else text[:end]
            self._new_line()
            rest = text[end:]
        else:
            first, rest = "", text
        if self._is_long:
            return first + rest
        self._line += rest
        if len(self._line) > LIMIT:
            first += self.flush()
            self._is_long = True
        self._cursor = len(self._line)
        return first

    def feed(self, text: str) -> str:
        """Take any text; return what can be given out."""
        if "\r\n" in text:  # many files are full of it, and it is the same as LF
            text = text.replace("\r\n", "\n")
        if self._state is _State.TEXT and "\x1b" in text:
            text = _without_colours(text)
        self._out = []
        position = 0
        while position < len(text):
            position = self._step(text, position)
        return "".join(self._out)

    def flush(self) -> str:
        """Give out the open line as it stands."""
        line = self._line
        self._line = ""
        self._cursor = 0
        self._is_overwritten = False
        return line

    def finish(self) -> str:
        """Give out the rest when nothing more can come."""
        rest = self.feed(self.decode(b"", is_last=True))
        self._state = _State.TEXT
        return rest + self.flush()

    def _new_line(self) -> None:
        self._line = ""
        self._cursor = 0
        self._is_overwritten = False
        self._is_long = False

    def _step(self, text: str, position: int) -> int:
        """Take the next run of `text` in the present state; return where it ends."""
        if self._state is _State.TEXT:
            return self._step_text(text, position)
        if self._state is _State.ESCAPE:
            return self._step_escape(text, position)
        if self._state is _State.STRING:
            return self._step_string(text, position)
        return self._step_sequence(text, position)

    def _step_text(self, text: str, position: int) -> int:
        special = _SPECIAL.search(text, position)
        end = special.start() if special else len(text)
        if end > position:
            self._write_lines(text[position:end])
        if special is None:
            return end
        self._control(text[end])
        return end + 1

    def _write_lines(self, run: str) -> None:
        if self._cursor == len(self._line):
            self._out.append(self.feed_plain(run))
            return
        first, newline, rest = run.partition("\n")
        self._write(first)
        if newline:
            self._out.append(self.flush() + "\n")
            self._new_line()
            self._out.append(self.feed_plain(rest))

    def _write(self, run: str) -> None:
        """Put `run` over what stands at the cursor."""
        before = self._line[: self._cursor].ljust(self._cursor)
        self._cursor += len(run)
        self._line = before + run + self._line[self._cursor :]
        if len(self._line) > LIMIT:
            self._out.append(self.flush())
            self._is_long = True

    def _control(self, character: str) -> None:
        if character == "\r":
            self._move(0)
            self._is_overwritten = True
        elif character == "\b":
            self._move(self._cursor - 1)
            self._is_overwritten = True
        elif character == "\x1b":
            self._begin(_State.ESCAPE)
        elif ord(character) in _C1:
            self._introduce(_C1[ord(character)])

    def _move(self, column: int) -> None:
        self._cursor = min(max(column, 0), LIMIT)
        self._is_long = False

    def _begin(self, state: _State) -> None:
        self._state = state
        self._length = 0
        self._parameters = ""

    def _introduce(self, character: str) -> None:
        """Begin what the character after ESC stands for."""
        if character == "[":
            self._begin(_State.SEQUENCE)
        elif character in _STRING_STARTERS:
            self._begin(_State.STRING)
        elif " " <= character <= "/":
            self._begin(_State.CHARSET)
        else:
            self._state = _State.TEXT

    def _step_escape(self, text: str, position: int) -> int:
        character = text[position]
        if character < " " or character > "~":
            self._state = _State.TEXT  # no sequence: the character counts itself
            return position
        self._introduce(character)
        return position + 1

    def _step_sequence(self, text: str, position: int) -> int:
        """Go on in a CSI or charset sequence up to its final character."""
        allowed = _PARAMETERS if self._state is _State.SEQUENCE else _INTERMEDIATE
        stop = min(len(text), position + LIMIT - self._length)
        match = allowed.match(text, position, stop)
        end = match.end() if match else position
        self._parameters += text[position:end]
        self._length += end - position
        if end == len(text) and self._length < LIMIT:
            return end
        is_ended = end < len(text) and self._length < LIMIT and " " <= text[end] <= "~"
        is_effect = self._state is _State.SEQUENCE
        self._state = _State.TEXT
        if not is_ended:
            return end
        if is_effect:
            self._effect(text[end])
        return end + 1

    def _effect(self, final: str) -> None:
        number = self._parameters
        if number and not (number.isascii() and number.isdigit()):
            return  # private or with several parameters: none of ours
        value = int(number[:5] or 0)
        if final == "K":
            self._erase(value)
        elif final == "C":
            self._move(self._cursor + max(value, 1))
        elif final == "D":
            self._move(self._cursor - max(value, 1))
        elif final in "G`":
            self._move(max(value, 1) - 1)

    def _erase(self, part: int) -> None:
        self._is_long = False
        if part == 0:
            self._line = self._line[: self._cursor]
        elif part == 1:
            end = min(self._cursor + 1, len(self._line))
            self._line = " " * end + self._line[end:]
        elif part == 2:
            self._line = ""

    def _step_string(self, text: str, position: int) -> int:
        """Go on in a control string up to its end."""
        stop = min(len(text), position + LIMIT - self._length)
        ending = _STRING_END.search(text, position, stop)
        if ending is None:
            self._length += stop - position
            if self._length >= LIMIT:
                self._state = _State.TEXT
            return stop
        self._state = _State.TEXT
        character = ending.group()
        if character == "\n":
            return ending.start()
        if character == "\x1b":
            self._begin(_State.ESCAPE)  # of the ST that ends it, or of something new
        return ending.end()
