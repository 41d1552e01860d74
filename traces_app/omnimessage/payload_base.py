"""What all payloads share: the base class, how things end, who speaks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Any, ClassVar, Literal

# "tool" and "system" come from other systems; here a person is "user".
Role = Literal["user", "assistant", "tool", "system"]
EventType = Literal["start", "delta", "stop"]
Json = Any  # a value as json.loads returns it
NO_EXTRA: Mapping[str, Json] = MappingProxyType({})


def no_extra() -> Mapping[str, Json]:
    """Return the shared empty mapping: a dataclass default must be a factory."""
    return NO_EXTRA


class StopReason(StrEnum):
    """How an executed call, or a request to a model, came to its end."""

    COMPLETED = "completed"
    FAILED = "failed"
    ABORTED = "aborted"
    TIMEOUT = "timeout"
    MALFORMED = "malformed"  # requests only
    AUTH = "auth"  # requests only


@dataclass(frozen=True, slots=True, kw_only=True)
class Payload:
    """Base of every payload: `extra` holds fields this version does not know."""

    KIND: ClassVar[str] = ""
    extra: Mapping[str, Json] = field(default_factory=no_extra)
