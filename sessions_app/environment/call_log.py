"""The output log of one call: what people see of it, before any cut."""

from __future__ import annotations

from sessions_app.environment.artifacts import Spool
from sessions_app.environment.output_sink import OutputSink
from sessions_app.environment.tool import Artifact

_DRAIN_EVERY = 1024 * 1024  # characters


class CallLog:
    """Hands a tool's text to the sink and to its spool, under the call's own id."""

    def __init__(self, tool_call_id: str, *, sink: OutputSink, spool: Spool) -> None:
        self._item_id = tool_call_id
        self._sink = sink
        self._spool = spool
        self._undrained = 0
        sink.bind(tool_call_id, tool_call_id)

    def write(self, text: str) -> None:
        """Append text that the tool produced."""
        self._sink.write(self._item_id, text)
        self._spool.write(text)
        self._undrained += len(text)

    async def drain(self) -> None:
        """Wait now and then until the sink has caught up."""
        if self._undrained >= _DRAIN_EVERY:
            self._undrained = 0
            await self._sink.drain(self._item_id)

    async def artifact(self) -> Artifact | None:
        """Return the file with everything that was written."""
        return await self._spool.artifact()

    def close(self) -> None:
        """Let go of what no marker names."""
        self._spool.discard()
