"""What a child says, as the tools hand it over: the answer, the news, the ending."""

from __future__ import annotations

from sessions_app.environment.background import UnreadText
from traces_app.omnimessage import OmniMessage, StopReason
from traces_app.omnimessage import payloads as p

HELD = 1024 * 1024  # characters that are kept between two calls


class _Words:
    """Unread text of several messages, each on a line of its own, up to `HELD`."""

    def __init__(self) -> None:
        self._text = UnreadText(head=0)
        self.clear()

    def clear(self) -> None:
        self._text.restart(head=HELD // 2, tail=HELD - HELD // 2)
        self._is_line_open = False
        self._needs_break = False

    def add(self, text: str) -> None:
        if self._needs_break and self._is_line_open:
            self._text.add("\n")
        self._needs_break = False
        self._text.add(text)
        self._is_line_open = not text.endswith("\n")

    def end_message(self) -> None:
        self._needs_break = True

    def take(self) -> str:
        """Return what is unread; where the middle was dropped a marker says so."""
        total, head, tail = (
            self._text.total,
            self._text.take_head(),
            self._text.tail(),
        )
        self.clear()
        omitted = total - len(head) - len(tail)
        if not omitted:
            return head + tail
        return (
            f"{head}\n[{omitted} characters omitted here; "
            f"the subagent's own record has them]\n{tail}"
        )


class ChildAnswer:
    """Folds the messages of a child's task.

    The final answer is the text after the last tool call; a text that an attempt at
    a request left unfinished belongs to it, the next attempt goes on from there.
    """

    def __init__(self) -> None:
        self.has_answer = False
        self.failure: str | None = None  # why the task was not completed
        self._said = _Words()
        self._answer = _Words()
        self._streamed = 0  # characters of the text that is being written

    def begin(self) -> None:
        """Start with another task; what is unread of the last one stays so."""
        self.has_answer = False
        self.failure = None
        self._answer.clear()
        self._said.end_message()

    def feed(self, message: OmniMessage) -> None:
        """Take in what the child itself yields."""
        match message.payload:
            case p.PartialText(text=text):
                self._add(text)
                self._streamed += len(text)
            case p.Text(role="assistant", synthetic=None, text=text):
                # Not every provider streams: what came in no piece comes now.
                self._add(text[self._streamed :])
                self._end_message()
            case p.Text(role="assistant", synthetic="notice") as notice:
                if notice.extra.get("stop_reason") == StopReason.FAILED:
                    self.failure = notice.text.strip("[]")
            case p.ToolCall():
                self._end_message()
                self._answer.clear()
                self.has_answer = False
            case p.Abort(reason=reason):
                self.failure = reason

    def _add(self, text: str) -> None:
        if text:
            self._said.add(text)
            self._answer.add(text)
            self.has_answer = self.has_answer or bool(text.strip())

    def _end_message(self) -> None:
        self._streamed = 0
        self._said.end_message()
        self._answer.end_message()

    def take_all(self) -> str:
        """Return everything unread, on the way to the answer too."""
        self._answer.clear()
        return self._said.take()

    def take_answer(self) -> str:
        """Return the final answer as far as it is unread; the rest counts as read."""
        self._said.clear()
        return self._answer.take()
