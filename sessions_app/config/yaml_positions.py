"""YAML read safely, with the line and column of every key and value.

Only what JSON can say is accepted: no tags of other languages, no merge keys, no
keys that are not text. Dates stay text. Anchors work; how much they may unfold to is
bounded. Whatever is wrong becomes a `Problem`; nothing raises.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import yaml
from yaml.reader import ReaderError

Path = tuple[str | int, ...]

MAX_CHARACTERS = 1_000_000
MAX_NODES = 50_000
MAX_DEPTH = 60
_TAG = "tag:yaml.org,2002:"
_TEXT_TAGS = {_TAG + name for name in ("str", "timestamp", "value")}


class Position(NamedTuple):
    """A place in a text; both numbers count from 1."""

    line: int
    column: int


START = Position(1, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One thing that is wrong with a document, and where."""

    path: str
    line: int
    column: int
    message: str
    where: Path = field(default=(), repr=False, compare=False)  # the path in parts
    is_ignorable: bool = field(default=False, repr=False, compare=False)

    def __str__(self) -> str:
        return f"{self.line}:{self.column}: {self.path}: {self.message}"


@dataclass(slots=True, kw_only=True)
class Document:
    """A parsed text; `value` is worth something only where it has no problems."""

    value: Any = None
    values: dict[Path, Position] = field(default_factory=dict)
    keys: dict[Path, Position] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def problem(
        self,
        path: Path,
        message: str,
        *,
        at_key: bool = False,
        is_ignorable: bool = False,
    ) -> Problem:
        """Return a problem at `path`, or at its nearest ancestor that is there."""
        places: Mapping[Path, Position] = self.keys if at_key else self.values
        place = places.get(path)
        here = path
        while place is None and here:
            here = here[:-1]
            place = self.values.get(here)
        line, column = place or START
        return Problem(
            path=format_path(path),
            line=line,
            column=column,
            message=message,
            where=path,
            is_ignorable=is_ignorable,
        )


def format_path(path: Path) -> str:
    """Return a path as people write it: `tools.builtin[0].timeoutMs`."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            text += f".{part}" if text else part
    return text or "(document)"


def parse(text: str) -> Document:
    """Return the document in `text`; never raises."""
    document = Document()
    if len(text) > MAX_CHARACTERS:
        message = f"longer than {MAX_CHARACTERS} characters"
        document.problems.append(document.problem((), message))
        return document
    try:
        loader = yaml.SafeLoader(text)
        node = loader.get_single_node()
    except (yaml.YAMLError, RecursionError) as error:
        document.problems.append(_syntax_problem(error, text))
        return document
    if node is None:
        document.problems.append(document.problem((), "the document is empty"))
        return document
    document.value = _Reader(loader, document).value_of(node, (), 0)
    return document


def _syntax_problem(error: yaml.YAMLError | RecursionError, text: str) -> Problem:
    index, message = 0, "nested too deeply"
    if isinstance(error, ReaderError):
        index = error.position
        message = f"the character U+{error.character:04X} is not allowed"
    elif isinstance(error, yaml.MarkedYAMLError):
        index = _index_of(error, text)
        words = (error.context, error.problem)
        message = "not valid YAML: " + ", ".join(word for word in words if word)
    before = text[:index]
    return Problem(
        path="(document)",
        line=before.count("\n") + 1,
        column=index - before.rfind("\n"),
        message=message,
    )


def _index_of(error: yaml.MarkedYAMLError, text: str) -> int:
    """Return where to look; at the end of the text that is at what was left open."""
    last = max(len(text.rstrip()) - 1, 0)
    marks = [error.problem_mark, error.context_mark]
    found = [mark.index for mark in marks if mark is not None]
    inside = [index for index in found if index <= last]
    return inside[0] if inside else last


class _Reader:
    """Turns nodes into values, noting places and problems on the way."""

    def __init__(self, loader: yaml.SafeLoader, document: Document) -> None:
        self._loader = loader
        self._document = document
        self._nodes = 0

    def value_of(self, node: yaml.Node, path: Path, depth: int) -> Any:
        """Return the value of `node`, which stands at `path`."""
        self._document.values[path] = _position(node)
        self._nodes += 1
        if depth > MAX_DEPTH or self._nodes > MAX_NODES:
            if self._nodes <= MAX_NODES + 1:
                self._add(path[:3], "nested too deeply, or unfolds to too much")
            self._nodes += MAX_NODES
            return None
        if isinstance(node, yaml.MappingNode) and node.tag == _TAG + "map":
            return self._mapping(node, path, depth)
        if isinstance(node, yaml.SequenceNode) and node.tag == _TAG + "seq":
            return [
                self.value_of(item, (*path, index), depth + 1)
                for index, item in enumerate(node.value)
            ]
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node, path)
        self._add(path, f"the tag {_short(node.tag)} is not supported")
        return None

    def _mapping(
        self, node: yaml.MappingNode, path: Path, depth: int
    ) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for key_node, value_node in node.value:
            key = self._key(key_node, path)
            if key is None:
                continue
            here = (*path, key)
            if key in result:
                first = self._document.keys[here].line
                self._add_at(
                    key_node, here, f"duplicate key; the first one is on line {first}"
                )
                continue
            self._document.keys[here] = _position(key_node)
            result[key] = self.value_of(value_node, here, depth + 1)
        return result

    def _key(self, node: yaml.Node, path: Path) -> str | None:
        if isinstance(node, yaml.ScalarNode):
            if node.tag in _TEXT_TAGS:
                return str(node.value)
            here = (*path, str(node.value))
            if node.tag == _TAG + "merge":
                message = "merge keys are not supported; write the keys out"
            else:
                message = (
                    f"reads as {_short(node.tag)}; a key is text: put it in quotes"
                )
            self._add_at(node, here, message)
        else:
            self._add_at(node, path, "a key must be text")
        return None

    def _scalar(self, node: yaml.ScalarNode, path: Path) -> Any:
        if node.tag in _TEXT_TAGS:
            if any(c == "\0" or "\ud800" <= c <= "\udfff" for c in node.value):
                self._add(path, "holds a character that text must not hold")
            return node.value
        kind = node.tag.removeprefix(_TAG)
        if kind not in ("null", "bool", "int", "float"):
            self._add(path, f"the tag {_short(node.tag)} is not supported")
            return None
        try:
            value = self._loader.construct_object(node)
        except (ValueError, KeyError, yaml.YAMLError):
            self._add(path, f"not a valid {kind}")
            return None
        if isinstance(value, float) and not math.isfinite(value):
            self._add(path, f"{node.value} is not a finite number")
        return value

    def _add(self, path: Path, message: str) -> None:
        self._document.problems.append(self._document.problem(path, message))

    def _add_at(self, node: yaml.Node, path: Path, message: str) -> None:
        line, column = _position(node)
        self._document.problems.append(
            Problem(path=format_path(path), line=line, column=column, message=message)
        )


def _position(node: yaml.Node) -> Position:
    return Position(node.start_mark.line + 1, node.start_mark.column + 1)


def _short(tag: str) -> str:
    return "!!" + tag.removeprefix(_TAG) if tag.startswith(_TAG) else tag
