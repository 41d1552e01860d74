"""The settings of an agent loop, each with the value that holds when none is given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopOptions:
    """Limits of a run; the defaults are those of a fresh session."""

    max_turns: int = -1  # requests of one task; -1 and 0: no cap
    max_tokens: int | None = None
    thinking_level: str | None = None
    retries: int = 5  # attempts after the first
    first_wait_s: float = 2.0  # doubled for each further attempt
    max_wait_s: float = 30.0
    stop_grace_s: float = 3.0  # the Environment itself takes a second at most
    max_context_length: int | None = None  # tokens; None: only the model's window
    max_session_turns: int | None = None  # requests per context; None: no limit
    compaction_mode: str = "summary"  # or "off"
    compaction_prompt: str | None = None  # None: the one in compaction.py
    # PROVIDER/ID: US dollars per million tokens, by kind; see config/price.py.
    prices: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
