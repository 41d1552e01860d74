"""Counts the requests that tools made to models of their own, such as a description."""

from __future__ import annotations

from collections.abc import Mapping

from sessions_app.engine.tape import Tape
from sessions_app.environment.describe import MODEL_USE
from traces_app.omnimessage import OmniMessage
from traces_app.omnimessage import payloads as p


def usage_of_tool(output: OmniMessage, tape: Tape) -> list[OmniMessage]:
    """Return the event that counts what the output's details tell, if they do."""
    payload = output.payload
    assert isinstance(payload, p.ToolCallOutput)
    use = payload.details.get(MODEL_USE)
    if not isinstance(use, Mapping):
        return []
    request = p.Usage(
        cache_read=_count(use.get("cache_read")),
        cache_write=_count(use.get("cache_write")),
        output=_count(use.get("output")),
        input=_count(use.get("input")),
    )
    model = use.get("model")
    return [
        tape.usage(
            request,
            tool_call_id=payload.tool_call_id,
            model=model if isinstance(model, str) else None,
        )
    ]


def _count(value: object) -> int:
    """Return a number of tokens; a custom tool may have written anything."""
    if isinstance(value, bool) or not isinstance(value, int):
        return 0
    return max(0, value)
