"""Puts messages on record, into the history and on the stream, in one order."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from sessions_app.config.price import cost_usd
from sessions_app.engine.channel import Channel
from sessions_app.engine.decision import Recorder
from sessions_app.engine.history import History
from traces_app.omnimessage import OmniMessage, event
from traces_app.omnimessage import payloads as p
from traces_app.omnimessage.codec import dumps, loads
from traces_app.omnimessage.money import add_usd

# What a model costs; None names the session's own. No price: an empty mapping.
PriceOf = Callable[[str | None], Mapping[str, float]]


def _no_price(_: str | None) -> Mapping[str, float]:
    return {}


class _Entry:
    """One call of the recorder; `messages` is emptied when it fails."""

    def __init__(self, messages: Sequence[OmniMessage]) -> None:
        self.messages = tuple(messages)
        self.is_settled = False
        self.shown = asyncio.Event()


class Tape:
    """The only way a complete message or an event leaves the engine.

    Several tasks record at once without waiting for each other. The recorder keeps
    the order in which it is called; whatever order the calls return in, history and
    stream get the messages in that order too, and only after they are on record.
    """

    def __init__(
        self,
        *,
        record: Recorder,
        history: History,
        stream: Channel[OmniMessage],
        price_of: PriceOf = _no_price,
    ) -> None:
        self.history = history
        self._price_of = price_of
        self._record = record
        self._stream = stream
        self._entries: deque[_Entry] = deque()

    async def record(self, *messages: OmniMessage) -> tuple[OmniMessage, ...]:
        """Store the messages together, then show them; return them as stored.

        Raises what the recorder raises; then none of them is in the history.
        """
        entry = _Entry([as_stored(message) for message in messages])
        self._entries.append(entry)
        stored = entry.messages
        try:
            await self._record(*stored)
        except BaseException:
            entry.messages = ()
            raise
        finally:
            entry.is_settled = True
            self._advance()
        await entry.shown.wait()
        return stored

    def note(self, *messages: OmniMessage) -> None:
        """Take in messages that somebody else has put on record."""
        entry = _Entry(messages)
        entry.is_settled = True
        self._entries.append(entry)
        self._advance()

    def usage(
        self,
        request: p.Usage,
        *,
        tool_call_id: str | None = None,
        model: str | None = None,
    ) -> OmniMessage:
        """Return the event that counts a request for the session.

        It is to be recorded before anything else is awaited: then each total holds
        those of the events before it.
        """
        cost = cost_usd(request, self._price_of(model))
        counts = replace(request, input=0) + p.Usage()
        session, spent = self._used()
        counted = p.TokenUsage(
            session=session + counts,
            request=counts,
            tool_call_id=tool_call_id,
            model=model,
            input_tokens=request.input,
            request_usd=cost,
            session_usd=add_usd(spent, cost),
        )
        return event(counted)

    def _used(self) -> tuple[p.Usage, float | None]:
        """Return what the session used in all, events on their way included."""
        usage, spent = self.history.usage, self.history.spent_usd
        for entry in self._entries:
            for message in entry.messages:
                if isinstance(payload := message.payload, p.TokenUsage):
                    usage += payload.request
                    spent = add_usd(spent, payload.request_usd)
        return usage, spent

    async def piece(self, message: OmniMessage) -> None:
        """Show a streaming piece, or a child's message; neither is recorded."""
        await self._stream.offer(message)

    def _advance(self) -> None:
        while self._entries and self._entries[0].is_settled:
            entry = self._entries.popleft()
            for message in entry.messages:
                self.history.feed(message)
                self._stream.put(message)
            entry.shown.set()


def as_stored(message: OmniMessage) -> OmniMessage:
    """Return the message with NUL and lone surrogates replaced as the record does.

    So the live history equals the one folded from the record, and a digest covers
    the arguments people can read there.
    """
    payload: p.ModelPayload
    match message.payload:
        case p.Text() as text:
            payload = replace(text, text=_stored(text.text))
        case p.Thinking() as thought:
            payload = replace(thought, thinking=_stored(thought.thinking))
        case p.ToolCall() as call:
            payload = replace(
                call, name=_stored(call.name), arguments=_stored(call.arguments)
            )
        case _:
            return message
    return replace(message, payload=payload)


def _stored(text: str) -> str:
    return str(loads(dumps(text)))
