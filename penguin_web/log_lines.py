"""One log record as one line of `key=value` pairs, with known secrets taken out."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable
from datetime import UTC, datetime

SHORTEST_SECRET = 8  # shorter texts occur by chance and would eat ordinary words


class LineFormatter(logging.Formatter):
    """Write time, level, logger and message; a traceback stays on the same line."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        super().__init__()
        self._secrets = [text for text in secrets if len(text) >= SHORTEST_SECRET]

    def format(self, record: logging.LogRecord) -> str:
        """Return the line; every value is safe to read by a machine."""
        moment = datetime.fromtimestamp(record.created, tz=UTC)
        pairs = {
            "time": moment.isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": self._masked(record.getMessage()),
        }
        if record.exc_info:
            pairs["exception"] = self._masked(self.formatException(record.exc_info))
        return " ".join(f"{key}={_quoted(value)}" for key, value in pairs.items())

    def _masked(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, "[secret]")
        return text


def _quoted(value: str) -> str:
    """Quote what holds spaces, quotes or line ends, so that one record is one line."""
    if value and value.isprintable() and not set(value) & set(' "='):
        return value
    return json.dumps(value, ensure_ascii=False)
