"""The definition of one tool: what the model sees, who may run it, and its limits."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, NoReturn, Self, cast

import yaml
from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError

Permission = Literal["r", "rw"]
ModelClass = Literal["vision", "text-only"]

DEFAULT_TIMEOUT_MS = 120_000
DEFAULT_MAX_OUTPUT_LENGTH = 16_000
MAX_TIMEOUT_MS = 24 * 60 * 60 * 1000
# What they start can write, whatever a document says about them.
_WRITING_TOOLS = frozenset(
    {"exec_command", "input_command", "run_subagent", "input_subagent"}
)
_FIELDS = (
    "name",
    "description",
    "parameters",
    "permission",
    "forModel",
    "timeoutMs",
    "maxOutputLength",
)
# What the providers accept as the name of a function.
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_KINDS: dict[type, str] = {
    bool: "boolean",
    int: "number",
    float: "number",
    str: "string",
    list: "list",
    dict: "mapping",
    type(None): "null",
}


class ConfigError(ValueError):
    """A value of a document cannot be used; the text names the field and why.

    `path` says where it stands in the document, `field` is the name alone; both are
    empty where the whole is wrong.
    """

    def __init__(self, message: str, *, path: str = "", field: str = "") -> None:
        super().__init__(f"{path}: {message}" if path else message)
        self.message = message
        self.path = path
        self.field = field


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolDefinition:
    """One entry of `tools.builtin`, checked."""

    name: str
    description: str
    parameters: Mapping[str, Any]  # JSON Schema of the arguments
    permission: Permission | None = None  # None: a person is asked
    for_model: ModelClass | None = None  # None: every model gets it
    timeout_ms: int = DEFAULT_TIMEOUT_MS  # 0 or less: none
    max_output_length: int = DEFAULT_MAX_OUTPUT_LENGTH  # characters; 0 or less: none

    @classmethod
    def from_config(cls, entry: Any, *, path: str = "") -> Self:
        """Build it from the entry of a document that stands at `path`.

        Nothing is inherited from the default of that name. Raises `ConfigError`.
        """
        check = _Check(entry, path)
        name = check.name()
        return cls(
            name=name,
            description=check.text("description"),
            parameters=check.schema(),
            permission=check.permission(name),
            for_model=cast(
                "ModelClass | None", check.choice("forModel", "vision", "text-only")
            ),
            timeout_ms=check.whole_number(
                "timeoutMs", DEFAULT_TIMEOUT_MS, MAX_TIMEOUT_MS
            ),
            max_output_length=check.whole_number(
                "maxOutputLength", DEFAULT_MAX_OUTPUT_LENGTH
            ),
        )

    def to_config(self) -> dict[str, Any]:
        """Return the entry that `from_config` accepts; what is None is left out."""
        entry: dict[str, Any] = {
            "name": self.name,
            "description": self.description,
            "parameters": copy.deepcopy(dict(self.parameters)),
            "permission": self.permission,
            "forModel": self.for_model,
            "timeoutMs": self.timeout_ms,
            "maxOutputLength": self.max_output_length,
        }
        return {key: value for key, value in entry.items() if value is not None}


class _Check:
    """Reads the fields of one entry and says what is wrong with them."""

    def __init__(self, entry: Any, path: str) -> None:
        self._path = path
        if not isinstance(entry, Mapping):
            message = f"a tool definition is a mapping, found {_kind(entry)}"
            raise ConfigError(message, path=path)
        self._entry = entry
        for key in entry:
            if key not in _FIELDS:
                known = ", ".join(_FIELDS)
                self._refuse(str(key), f"unknown field; known are {known}")

    def text(self, field: str) -> str:
        value = self._required(field)
        if not isinstance(value, str):
            self._refuse(field, f"must be a string, found {_kind(value)}")
        if not value.strip():
            self._refuse(field, "must not be empty")
        return value

    def name(self) -> str:
        value = self.text("name")
        if not _NAME.fullmatch(value):
            message = f"{value!r} may hold only letters, digits, _ and -, at most 64"
            self._refuse("name", message)
        return value

    def permission(self, name: str) -> Permission | None:
        value = self.choice("permission", "r", "rw")
        if value == "r" and name in _WRITING_TOOLS:
            self._refuse("permission", f"{name} can write, it cannot be declared r")
        return cast("Permission | None", value)

    def choice(self, field: str, *choices: str) -> str | None:
        value = self._entry.get(field)
        if value is None:
            return None
        if not isinstance(value, str) or value not in choices:
            allowed = " or ".join(choices)
            self._refuse(field, f"must be {allowed}, found {value!r}")
        return value

    def whole_number(self, field: str, default: int, maximum: int | None = None) -> int:
        value = self._entry.get(field)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, int | float):
            self._refuse(field, f"must be a number, found {_kind(value)} {value!r}")
        if isinstance(value, float) and not value.is_integer():
            self._refuse(field, f"must be a whole number, found {value!r}")
        if maximum is not None and value > maximum:
            self._refuse(field, f"must be at most {maximum}")
        return int(value)

    def schema(self) -> dict[str, Any]:
        value = self._required("parameters")
        if not isinstance(value, Mapping):
            self._refuse(
                "parameters", f"must be a JSON Schema object, found {_kind(value)}"
            )
        if value.get("type", "object") != "object":
            self._refuse("parameters", "the schema's type must be object")
        try:
            Draft202012Validator.check_schema(value)
        except SchemaError as error:
            where = ".".join(str(part) for part in error.absolute_path) or "its root"
            message = f"no valid JSON Schema at {where}: {error.message}"
            self._refuse("parameters", message)
        plain = _json_copy(value)
        if plain is None:
            self._refuse("parameters", "holds a value that JSON does not know")
        for reference in _references(plain):
            # A reference to elsewhere would make a check of arguments load a URL.
            if not reference.startswith("#"):
                self._refuse("parameters", f"$ref {reference!r} leaves the schema")
        return plain

    def _required(self, field: str) -> Any:
        value = self._entry.get(field)
        if value is None:
            self._refuse(field, "is missing")
        return value

    def _refuse(self, field: str, message: str) -> NoReturn:
        path = f"{self._path}.{field}" if self._path else field
        raise ConfigError(message, path=path, field=field)


def _json_copy(value: Any) -> dict[str, Any] | None:
    """Return a copy as JSON would give it back; None where that would differ."""
    try:
        plain: dict[str, Any] = json.loads(json.dumps(value, allow_nan=False))
    except (TypeError, ValueError, RecursionError):
        return None
    return plain if plain == value else None


def _references(schema: Any) -> Iterator[str]:
    if isinstance(schema, Mapping):
        for key, value in schema.items():
            if key in ("$ref", "$dynamicRef") and isinstance(value, str):
                yield value
            else:
                yield from _references(value)
    elif isinstance(schema, list):
        for item in schema:
            yield from _references(item)


def _kind(value: Any) -> str:
    return _KINDS.get(type(value), type(value).__name__)


def default_tool_definitions() -> list[ToolDefinition]:
    """Return the six built-in tools as they are when a document names none."""
    return list(_defaults())


@lru_cache
def _defaults() -> tuple[ToolDefinition, ...]:
    text = Path(__file__).with_name("default_config.yaml").read_text("utf-8")
    entries = yaml.safe_load(text)["tools"]["builtin"]
    return tuple(
        ToolDefinition.from_config(entry, path=f"tools.builtin[{index}]")
        for index, entry in enumerate(entries)
    )
