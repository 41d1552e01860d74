"""Strict JSON for OmniMessages: what is not of the protocol is refused by name.

Unknown fields of a known payload are kept and written back; an unknown kind, a
missing field or a value of the wrong type raises `CodecError`.
"""

from __future__ import annotations

import dataclasses
import json
import math
import re
import types
import typing
from collections.abc import Mapping
from typing import Any, Literal, Union, get_args, get_origin

from traces_app.omnimessage import payloads as p

_EVENTS = {kind.KIND: kind for kind in p.EVENT_PAYLOADS}
_MODEL = {kind.KIND: kind for kind in p.MODEL_PAYLOADS}
# Python keywords and our clearer names, as they stand in the JSON.
_JSON_NAMES: dict[type[p.Payload], dict[str, str]] = {
    p.ModeChanged: {"from_mode": "from", "to_mode": "to"},
}
# Fields written even when empty or None: the protocol names them without "?".
_ALWAYS = {"details", "decided_by", "workdir", "by"}
_COUNTS = ("cache_read", "cache_write", "output", "total")  # of a Usage
# An escape in JSON text, told apart from an escaped backslash before "u0000".
_ESCAPED_NUL = re.compile(r"(?<!\\)((?:\\\\)*)\\u0000")
# NUL, or one half of a surrogate pair.
_ESCAPED_ODDITY = re.compile(r"\\u(0000|[dD][89a-fA-F])")


class CodecError(ValueError):
    """A message that is not of the protocol; the text names the field."""


def dumps(value: Any) -> str:
    """Return one line of JSON, with NUL and lone surrogates made storable."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return storable(text)


def storable(text: str) -> str:
    r"""Replace NUL by U+2400 and lone surrogates by U+FFFD, raw or escaped."""
    if "\\u0000" in text:
        text = _ESCAPED_NUL.sub("\\1\u2400", text)
    text = text.replace("\x00", "\u2400")
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def loads(line: str) -> Any:
    """Parse one JSON value; duplicate keys and NaN are refused with `CodecError`.

    NUL and lone surrogates that the line holds as escapes come out storable.
    """
    value = parse(line)
    if _ESCAPED_ODDITY.search(line):
        value = json.loads(storable(json.dumps(value, ensure_ascii=False)))
    return value


def parse(line: str) -> Any:
    """Parse like `loads`, every character kept: for digests of what would run."""
    try:
        return json.loads(line, object_pairs_hook=_unique, parse_constant=_refuse)
    except RecursionError as error:
        raise CodecError("nested too deeply") from error
    except json.JSONDecodeError as error:
        raise CodecError(
            f"not valid JSON: {error.msg} at column {error.colno}"
        ) from error


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise CodecError(f"duplicate key {twice!r}")
    return result


def _refuse(constant: str) -> Any:
    raise CodecError(f"{constant} is not a JSON value")


def payload_to_dict(payload: p.Payload) -> dict[str, Any]:
    """Return the payload as JSON-ready dict, `type` and `role` first."""
    result: dict[str, Any] = {}
    if not isinstance(payload, p.SessionMeta):
        result["type"] = payload.KIND
    names = _JSON_NAMES.get(type(payload), {})
    for name, default, _ in _fields(type(payload)):
        value = getattr(payload, name)
        if name not in _ALWAYS and default is not _REQUIRED and value == default:
            continue
        result[names.get(name, name)] = _plain(value)
    result.update(payload.extra)
    return result


def _plain(value: Any) -> Any:
    if isinstance(value, p.Usage):
        return {name: getattr(value, name) for name in _COUNTS}
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, p.StopReason):
        return value.value
    return value


def payload_from_dict(message_type: str, source: Any) -> p.Payload:
    """Build the payload dataclass for a message of `message_type`."""
    if not isinstance(source, dict):
        raise CodecError(f"payload: expected an object, found {_name_of(source)}")
    kind = _kind(message_type, source)
    names = {v: k for k, v in _JSON_NAMES.get(kind, {}).items()}
    known: dict[str, Any] = {}
    extra: dict[str, Any] = {}
    fields = {name: hint for name, _, hint in _fields(kind)}
    for key, value in source.items():
        name = names.get(key, key)
        if name in fields:
            known[name] = _checked(f"payload.{key}", value, fields[name])
        elif key != "type" or kind is p.SessionMeta:
            extra[key] = value
    for name, default, _ in _fields(kind):
        if default is _REQUIRED and name not in known:
            raise CodecError(f"payload.{name}: missing in {kind.KIND}")
    if extra:
        known["extra"] = extra
    return kind(**known)


def _kind(message_type: str, source: dict[str, Any]) -> type[p.Payload]:
    if message_type == "session_meta":
        return p.SessionMeta
    table = _MODEL if message_type == "model_msg" else _EVENTS
    kind = table.get(str(source.get("type")))
    if kind is None:
        raise CodecError(f"payload.type: unknown {message_type} {source.get('type')!r}")
    return kind


_REQUIRED = object()


_FIELDS: dict[type[p.Payload], tuple[tuple[str, Any, Any], ...]] = {}


def _fields(kind: type[p.Payload]) -> tuple[tuple[str, Any, Any], ...]:
    """Name, default and type of each field, `extra` left out, `role` first."""
    if kind in _FIELDS:
        return _FIELDS[kind]
    hints = typing.get_type_hints(kind)
    rows = []
    for field in dataclasses.fields(kind):
        if field.name == "extra":
            continue
        default = field.default
        if field.default_factory is not dataclasses.MISSING:
            default = field.default_factory()
        elif default is dataclasses.MISSING:
            default = _REQUIRED
        rows.append((field.name, default, hints[field.name]))
    rows.sort(key=lambda row: {"role": 0, "fidelity": 2}.get(row[0], 1))
    _FIELDS[kind] = tuple(rows)
    return _FIELDS[kind]


def _checked(path: str, value: Any, hint: Any) -> Any:
    """Return `value` as the field's type, or raise naming path and expectation."""
    origin = get_origin(hint)
    if hint is Any:
        return value
    if origin in (Union, types.UnionType):
        if value is None and type(None) in get_args(hint):
            return None
        return _checked(
            path, value, next(h for h in get_args(hint) if h is not type(None))
        )
    if origin is Literal:
        if value not in get_args(hint):
            raise CodecError(
                f"{path}: expected one of {list(get_args(hint))}, found {value!r}"
            )
        return value
    if origin is tuple:
        if not isinstance(value, list):
            raise CodecError(f"{path}: expected a list, found {_name_of(value)}")
        return tuple(
            _checked(f"{path}[{i}]", item, get_args(hint)[0])
            for i, item in enumerate(value)
        )
    if origin is not None:  # Mapping[str, ...]
        if not isinstance(value, dict):
            raise CodecError(f"{path}: expected an object, found {_name_of(value)}")
        return value
    return _checked_scalar(path, value, hint)


def _checked_scalar(path: str, value: Any, hint: Any) -> Any:
    if hint is p.StopReason:
        try:
            return p.StopReason(value)
        except ValueError:
            known = [str(reason) for reason in p.StopReason]
            raise CodecError(
                f"{path}: expected one of {known}, found {value!r}"
            ) from None
    if hint is p.Usage:
        if not isinstance(value, dict):
            raise CodecError(f"{path}: expected an object, found {_name_of(value)}")
        counts = {name: value.get(name, 0) for name in _COUNTS}
        return p.Usage(
            **{k: _checked_scalar(f"{path}.{k}", v, int) for k, v in counts.items()}
        )
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if hint is int and isinstance(value, float) and math.isfinite(value):
        value = int(value) if value == int(value) else value
    if not isinstance(value, hint) or (hint is int and isinstance(value, bool)):
        raise CodecError(f"{path}: expected {hint.__name__}, found {_name_of(value)}")
    return value


def _name_of(value: Any) -> str:
    return "null" if value is None else type(value).__name__
