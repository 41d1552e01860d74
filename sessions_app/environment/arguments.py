"""Turns the argument text of a tool call into checked arguments."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError
from referencing import Registry
from referencing.exceptions import Unresolvable

from sessions_app.environment.tool import ToolError

_MOST_ERRORS = 5
_NAMES = {dict: "object", list: "array", str: "string", bool: "boolean"}


class ArgumentsError(ToolError):
    """The arguments cannot be used; the text tells the model what to change."""


def parse_arguments(text: str) -> dict[str, Any]:
    """Return the JSON object in `text`; raises `ArgumentsError`."""
    if not text.strip():
        raise ArgumentsError(
            "the arguments are empty; issue the call again with a JSON object"
        )
    try:
        value = json.loads(text, object_pairs_hook=_unique, parse_constant=_refuse)
    except RecursionError as error:
        raise _not_json("nested too deeply") from error
    except json.JSONDecodeError as error:
        place = f"line {error.lineno} column {error.colno}"
        raise _not_json(f"{error.msg} at {place}") from error
    except ValueError as error:
        raise _not_json(str(error)) from error
    if not isinstance(value, dict):
        raise ArgumentsError(
            f"the arguments must be a JSON object, found {_shown(value)}"
        )
    return value


def _not_json(reason: str) -> ArgumentsError:
    return ArgumentsError(
        f"the arguments are not valid JSON: {reason}; "
        "issue the call again with one complete JSON object"
    )


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Refuse what two readers could take for two different things."""
    result: dict[str, Any] = {}
    for key, value in pairs:
        if key in result:
            raise ValueError(f"duplicate key {key!r}")
        result[key] = value
    return result


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not a JSON value")


class ArgumentsCheck:
    """The schema of one tool, compiled once."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        # The empty registry: a reference never makes a check load a URL.
        self._validator = Draft202012Validator(dict(schema), registry=Registry())

    def check(self, arguments: dict[str, Any]) -> None:
        """Raise `ArgumentsError` naming each wrong place and what it expects."""
        try:
            errors = sorted(self._validator.iter_errors(arguments), key=_place)
        except (Unresolvable, RecursionError, re.error) as error:
            raise ArgumentsError(
                f"the tool's parameters cannot be checked: {error}; "
                "they must be corrected in the agent's config"
            ) from error
        if not errors:
            return
        lines = [_message(error) for error in errors[:_MOST_ERRORS]]
        if len(errors) > _MOST_ERRORS:
            lines.append(f"and {len(errors) - _MOST_ERRORS} more")
        raise ArgumentsError("invalid arguments: " + "; ".join(lines))


def _place(error: ValidationError) -> str:
    return error.json_path


def _message(error: ValidationError) -> str:
    path = error.json_path.removeprefix("$").removeprefix(".")
    if error.validator == "required":
        wanted: list[str] = error.validator_value  # type: ignore[assignment]
        missing = [key for key in wanted if key not in error.instance]  # type: ignore[operator]
        named = ", ".join(f"{path}.{key}" if path else key for key in missing)
        return f"{named} is required"
    if error.validator == "type":
        wanted_type = error.validator_value
        names = [wanted_type] if isinstance(wanted_type, str) else wanted_type
        expected = " or ".join(names)  # type: ignore[arg-type]
        return f"{path or 'the object'}: expected {expected}, found {_shown(error.instance)}"
    if error.validator in ("minLength", "pattern") and not str(error.instance).strip():
        return f"{path}: must not be empty"
    return f"{path or 'the object'}: {error.message}"


def _shown(value: Any) -> str:
    if value is None:
        return "null"
    kind = _NAMES.get(type(value), "number")
    if isinstance(value, dict | list):
        return kind
    text = json.dumps(value, ensure_ascii=False)
    return f"{kind} {text if len(text) <= 60 else text[:59] + '…'}"


def text_argument(arguments: Mapping[str, Any], name: str) -> str:
    """Return a string that must be there, whatever the configured schema allows."""
    if name not in arguments:
        raise ArgumentsError(f"invalid arguments: {name} is required")
    return optional_text(arguments, name)


def optional_text(arguments: Mapping[str, Any], name: str) -> str:
    """Return a string, empty when it is left out; raises `ArgumentsError`."""
    value = arguments.get(name, "")
    if not isinstance(value, str):
        raise ArgumentsError(
            f"invalid arguments: {name}: expected string, found {_shown(value)}"
        )
    return value


def optional_number(arguments: Mapping[str, Any], name: str) -> float | None:
    """Return a number, None when it is left out; raises `ArgumentsError`."""
    value = arguments.get(name)
    if name in arguments and (
        isinstance(value, bool) or not isinstance(value, int | float)
    ):
        raise ArgumentsError(
            f"invalid arguments: {name}: expected number, found {_shown(value)}"
        )
    return value
