"""Checks a parsed document against its JSON Schema, in words and with places."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from functools import lru_cache
from pathlib import Path as FilePath
from typing import Any, Literal

from jsonschema import Draft202012Validator
from jsonschema.validators import extend

from sessions_app.config.yaml_positions import Document, Path, Problem

DocumentKind = Literal["agent", "project"]
_Error = Any  # a ValidationError; its stubs call every field possibly unset

_TYPES = {
    "array": "a list",
    "boolean": "true or false",
    "integer": "an integer",
    "null": "null",
    "number": "a number",
    "object": "a mapping",
    "string": "text",
}
# `(?![\s\S])` is the end of the text in every dialect; `$` lets a newline follow.
_PATTERNS = {
    "\\S": "must not be empty",
    "^[^/]+/.+(?![\\s\\S])": "must be PROVIDER/ID",
    "^/": "must be an absolute path",
    "^https?://[^/@\\s]+(/\\S*)?(?![\\s\\S])": "must be an http(s) URL without credentials",
}
_CREDENTIALS = {"api_key", "apikey", "key", "token", "password", "secret"}


def load_schema() -> dict[str, Any]:
    """Return the JSON Schema of both documents."""
    text = FilePath(__file__).with_name("config_schema.json").read_text("utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema


@lru_cache
def _validator(kind: DocumentKind) -> Draft202012Validator:
    # 5.0 is no integer here: a float would go on into code that counts.
    checker = Draft202012Validator.TYPE_CHECKER.redefine(
        "integer",
        lambda _, value: isinstance(value, int) and not isinstance(value, bool),
    )
    schema = load_schema()
    # The stubs of jsonschema leave `extend` without types.
    strict = extend(Draft202012Validator, type_checker=checker)  # type: ignore[no-untyped-call]
    validator: Draft202012Validator = strict({**schema, "$ref": f"#/$defs/{kind}"})
    return validator


@lru_cache
def top_level_keys(kind: DocumentKind) -> frozenset[str]:
    """Return the keys a document of that kind may have."""
    return frozenset(load_schema()["$defs"][kind]["properties"])


def kind_of(value: Any) -> DocumentKind | None:
    """Tell an agent document from a project document by its keys."""
    if not isinstance(value, Mapping):
        return None
    agent = len(top_level_keys("agent") & value.keys())
    project = len(top_level_keys("project") & value.keys())
    if agent == project:
        return None
    return "agent" if agent > project else "project"


def check_schema(document: Document, kind: DocumentKind) -> list[Problem]:
    """Return what is wrong with the document, in the order of its text."""
    problems: dict[tuple[str, str], Problem] = {}
    for error in _validator(kind).iter_errors(document.value):
        for problem in _problems(document, error):
            problems.setdefault((problem.path, problem.message), problem)
    return sorted(problems.values(), key=lambda p: (p.line, p.column))


def _problems(document: Document, error: _Error) -> Iterator[Problem]:
    path: Path = tuple(error.absolute_path)
    if error.validator == "additionalProperties" and error.validator_value is False:
        known = error.schema["properties"]
        for key in error.instance:
            if key not in known:
                yield _unknown_key(document, (*path, key), known)
    elif error.validator == "required":
        for key in error.validator_value:
            if key not in error.instance:
                yield document.problem((*path, key), "is missing")
    elif error.validator == "pattern" and "propertyNames" in error.absolute_schema_path:
        here = (*path, error.instance)
        yield document.problem(here, "is no name of a variable", at_key=True)
    else:
        yield document.problem(path, _message(error))


def _unknown_key(document: Document, path: Path, known: Iterable[str]) -> Problem:
    """Return the problem of a key that the schema does not know."""
    key = str(path[-1])
    message = f"unknown key {json.dumps(key, ensure_ascii=False)}"
    meant = did_you_mean(key, known)
    if meant:
        message += f"; did you mean {meant}?"
    elif key.lower() in _CREDENTIALS:
        message += "; credentials are never part of a document"
    else:
        message += f"; known: {', '.join(sorted(known))}"
    return document.problem(path, message, at_key=True, is_ignorable=True)


def did_you_mean(word: str, known: Iterable[str]) -> str | None:
    """Return the known word that was most likely meant."""
    plain = {name.replace("_", "").lower(): name for name in known}
    found = get_close_matches(word.replace("_", "").lower(), plain, n=1, cutoff=0.7)
    return plain[found[0]] if found else None


_BOUNDS = {
    "minimum": "at least",
    "maximum": "at most",
    "exclusiveMinimum": "more than",
}


def _message(error: _Error) -> str:
    expected, found = error.validator_value, error.instance
    if error.validator == "type":
        return _type_message(expected, found)
    if error.validator == "enum":
        choices = [choice for choice in expected if choice is not None]
        message = f"must be one of {', '.join(choices)}; found {_shown(found)}"
        meant = did_you_mean(found, choices) if isinstance(found, str) else None
        return f"{message}; did you mean {meant}?" if meant else message
    if bound := _BOUNDS.get(str(error.validator)):
        return f"must be {bound} {expected}; found {_shown(found)}"
    if error.validator == "minLength":
        return "must not be empty"
    if error.validator == "pattern":
        rule = _PATTERNS.get(expected, f"must match {expected}")
        return f"{rule}; found {_shown(found)}"
    return str(error.message)


def _type_message(expected: str | list[str], found: Any) -> str:
    wanted = [expected] if isinstance(expected, str) else expected
    message = f"expected {' or '.join(_TYPES[name] for name in wanted)}"
    message += f", found {_described(found)}"
    if isinstance(found, str) and {"integer", "number", "boolean"} & set(wanted):
        return f"{message}: remove the quotes"
    if isinstance(found, bool | int | float) and "string" in wanted:
        return f"{message}: put it in quotes"
    return message


def _described(value: Any) -> str:
    if isinstance(value, list | dict):
        return "a list" if isinstance(value, list) else "a mapping"
    kind = {bool: "the boolean ", int: "the number ", float: "the number "}
    kind[str] = "the text "
    return kind.get(type(value), "") + _shown(value)


def _shown(value: Any) -> str:
    if isinstance(value, list | dict):
        return ""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else text[:59] + "…"
