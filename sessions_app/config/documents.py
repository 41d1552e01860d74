"""Reads a document of either kind: parse, check, and leave out what may be left out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path as FilePath
from typing import Any

from sessions_app.config.schema_check import DocumentKind, check_schema
from sessions_app.config.tool_definition import ConfigError
from sessions_app.config.yaml_positions import Document, Path, Problem, parse

# Lists whose faulty entries a lenient load leaves out. Not the rules: to leave out a
# rule that denies would widen what runs.
_LISTS: tuple[Path, ...] = (("tools", "builtin"), ("models",))


class DocumentError(ConfigError):
    """A document is not usable; `problems` say what, where."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__("\n".join(str(problem) for problem in problems))
        self.problems = tuple(problems)


@lru_cache
def default_document(kind: DocumentKind) -> str:
    """Return the text a new project or agent begins with."""
    return FilePath(__file__).with_name(f"default_{kind}.yaml").read_text("utf-8")


def read_document(
    text: str, kind: DocumentKind, *, lenient: bool = False
) -> tuple[Document, list[Problem]]:
    """Return the parsed document and warnings about what was left out.

    A faulty entry that was left out is null in `Document.value`, so that the places
    of the others stay right. Raises `DocumentError`.
    """
    document = parse(text)
    if document.problems:
        raise DocumentError(document.problems)
    problems = check_schema(document, kind)
    if not problems:
        return document, []
    if not lenient or not all(_is_left_out(document, p) for p in problems):
        raise DocumentError(problems)
    return document, problems


def _is_left_out(document: Document, problem: Problem) -> bool:
    for path in _LISTS:
        if problem.where[: len(path)] == path and len(problem.where) > len(path):
            entries, index = value_at(document, path), problem.where[len(path)]
            entries[index] = None
            return True
    return problem.is_ignorable


def value_at(document: Document, path: Path) -> Any:
    """Return the value at `path`, or None where there is none."""
    value = document.value
    for part in path:
        if isinstance(value, Mapping):
            value = value.get(part)
        elif isinstance(value, list) and isinstance(part, int):
            value = value[part]
        else:
            return None
    return value


def mapping_at(document: Document, *path: str | int) -> Mapping[str, Any]:
    """Return the mapping at `path`; empty where there is none or null."""
    value = value_at(document, path)
    return value if isinstance(value, Mapping) else {}


def entries_at(document: Document, path: Path) -> Iterator[tuple[Path, Any]]:
    """Return the entries of the list at `path` with their own paths.

    Those that were left out are passed over.
    """
    for index, entry in enumerate(value_at(document, path) or []):
        if entry is not None:
            yield (*path, index), entry
