"""One request to the model: its stream, from the first piece to its end.

Pieces are shown as they come; complete messages are put on record, each before it is
shown; complete calls are handed on at once while the stream is read further. Whatever
ends the stream, words shown so far are completed and recorded.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass, field, replace

from sessions_app.engine.call_ids import CallIds
from sessions_app.engine.channel import Channel
from sessions_app.engine.stopping import cancel, on_abort
from sessions_app.engine.tape import Tape
from sessions_app.environment.tool import AbortSignal
from sessions_app.llm.client import LLMClient, LLMError, ModelRequest
from traces_app.omnimessage import OmniMessage, StopReason, assistant_text, thinking
from traces_app.omnimessage import payloads as p

logger = logging.getLogger(__name__)
_Item = OmniMessage | p.Usage | LLMError


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """How a request ended; `error` is set when the provider ended it."""

    status: StopReason
    usage: p.Usage | None = None
    error: LLMError | None = None


@dataclass(slots=True)
class _OpenText:
    """A text or thought whose complete message has not come yet."""

    texts: list[str] = field(default_factory=list)
    is_shown: bool = False  # its `start` is held back until there is a word
    is_stopped: bool = False


async def ask(
    llm: LLMClient,
    request: ModelRequest,
    *,
    tape: Tape,
    stop: AbortSignal,
    on_call: Callable[[OmniMessage], None],
) -> Answer:
    """Stream one answer onto the tape; returns promptly once `stop` fires.

    Raises only what the recorder raises.
    """
    stream = _Stream(tape, on_call)
    status, error = await read(llm, request, stop=stop, take=stream.take)
    await stream.complete_open_texts()
    return Answer(status=status, usage=stream.usage, error=error)


async def read(
    llm: LLMClient,
    request: ModelRequest,
    *,
    stop: AbortSignal,
    take: Callable[[OmniMessage | p.Usage], Awaitable[None]],
) -> tuple[StopReason, LLMError | None]:
    """Hand each item of the stream to `take`, until its end or until `stop` fires."""
    inbox: Channel[_Item] = Channel()
    pump = asyncio.create_task(_pump(llm, request, inbox))
    try:
        with on_abort(stop, lambda: inbox.close(drop=True)):
            while not stop.aborted and (item := await inbox.get()) is not None:
                if isinstance(item, LLMError):
                    return item.status, item
                await take(item)
        return (StopReason.ABORTED if stop.aborted else StopReason.COMPLETED), None
    finally:
        inbox.close(drop=True)
        await cancel(pump)


async def _pump(llm: LLMClient, request: ModelRequest, inbox: Channel[_Item]) -> None:
    """Read the provider in a task of its own: only this one is ever cancelled."""
    try:
        async with aclosing(llm.stream(request)) as items:
            async for item in items:
                await inbox.offer(item)
    except LLMError as error:
        inbox.put(error)
    except Exception as error:
        logger.exception("The model client failed")
        wrapped = LLMError(f"{type(error).__name__}: {error}")
        wrapped.__cause__ = error
        inbox.put(wrapped)
    finally:
        inbox.close()


class _Stream:
    def __init__(self, tape: Tape, on_call: Callable[[OmniMessage], None]) -> None:
        self.usage: p.Usage | None = None
        self._tape = tape
        self._on_call = on_call
        self._ids = CallIds(tape.history.call_ids)
        self._open: dict[type[p.Partial], _OpenText] = {}

    async def take(self, item: OmniMessage | p.Usage) -> None:
        """Handle one item of the wire."""
        if isinstance(item, p.Usage):
            self.usage = item
            return
        match item.payload:
            case p.PartialText(text=text) | p.PartialThinking(thinking=text) as piece:
                await self._on_text_piece(item, piece, text)
            case p.PartialToolCall(tool_call_id=wire_id) as piece:
                name = self._ids.for_piece(wire_id)
                renamed = replace(piece, tool_call_id=name)
                await self._tape.piece(replace(item, payload=renamed))
            case p.Text() | p.Thinking() as payload if payload.role == "assistant":
                await self._on_text(item, payload)
            case p.ToolCall(tool_call_id=wire_id) as call:
                renamed_call = replace(call, tool_call_id=self._ids.for_call(wire_id))
                message = replace(item, payload=renamed_call)
                (stored,) = await self._tape.record(message)
                self._on_call(stored)
            case p.InlineThinking() | p.InlineData():
                await self._tape.record(item)
            case _:
                logger.warning("The model client sent a %s; dropped", item.kind)

    async def complete_open_texts(self) -> None:
        """Record what was shown of texts that the stream did not finish."""
        for kind in list(self._open):
            await self._complete(kind)

    async def _on_text_piece(
        self, item: OmniMessage, piece: p.Partial, text: str
    ) -> None:
        kind = type(piece)
        if piece.event_type == "start" and kind in self._open:
            await self._complete(kind)
        part = self._open.setdefault(kind, _OpenText())
        if text:
            part.texts.append(text)
        if piece.event_type == "stop":
            part.is_stopped = True
            if part.is_shown:
                await self._tape.piece(item)
        elif part.is_shown:
            if text:
                await self._tape.piece(item)
        elif "".join(part.texts).strip():
            part.is_shown = True
            await self._show(kind, "start", "")
            await self._show(kind, "delta", "".join(part.texts))

    async def _on_text(self, item: OmniMessage, payload: p.Text | p.Thinking) -> None:
        is_text = isinstance(payload, p.Text)
        kind = p.PartialText if is_text else p.PartialThinking
        part = self._open.pop(kind, _OpenText())
        if part.is_shown and not part.is_stopped:
            await self._show(kind, "stop", "")
        words = payload.text if isinstance(payload, p.Text) else payload.thinking
        # A thought without words may still carry a signature the provider wants back.
        if words.strip() or payload.fidelity is not None:
            await self._tape.record(item)

    async def _complete(self, kind: type[p.Partial]) -> None:
        part = self._open.pop(kind)
        if not part.is_shown:
            return
        if not part.is_stopped:
            await self._show(kind, "stop", "")
        text = "".join(part.texts)
        is_text = kind is p.PartialText
        await self._tape.record(assistant_text(text) if is_text else thinking(text))

    async def _show(
        self, kind: type[p.Partial], event_type: p.EventType, text: str
    ) -> None:
        piece: p.Partial
        if kind is p.PartialText:
            piece = p.PartialText(role="assistant", event_type=event_type, text=text)
        else:
            piece = p.PartialThinking(
                role="assistant", event_type=event_type, thinking=text
            )
        await self._tape.piece(OmniMessage(payload=piece))
