"""Where output is cut, and the markers that say so."""

from __future__ import annotations

from sessions_app.environment.tool import Artifact

# What one call may hand over where the cap is disabled: bounds memory.
HARD_CEILING = 64 * 1024 * 1024  # characters
# Below this a poll's output has no room for two ends and the marker between them.
_MIN_SPLIT_CAP = 400
_GAP_LENGTH = 90  # characters of the marker between two ends, without its path


def effective_cap(max_output_length: int) -> int:
    """Return how many characters of text a call may hand over."""
    if max_output_length <= 0:
        return HARD_CEILING
    return min(max_output_length, HARD_CEILING)


class HeadText:
    """Keeps the head of a text up to a cap and counts the rest."""

    def __init__(self, cap: int) -> None:
        self._room = cap
        self._parts: list[str] = []
        self.produced = 0  # characters
        self.kept = 0  # characters

    @property
    def text(self) -> str:
        """Return what is kept."""
        if len(self._parts) > 1:
            self._parts = ["".join(self._parts)]
        return self._parts[0] if self._parts else ""

    def add(self, text: str) -> str:
        """Take more text; return the part of it that is kept."""
        self.produced += len(text)
        if not self._room:
            return ""
        kept = text[: self._room]
        self._room -= len(kept)
        self.kept += len(kept)
        self._parts.append(kept)
        return kept


def cut_marker(*, produced: int, kept: int, artifact: Artifact | None) -> str:
    """Return the marker of a text that was cut after its head."""
    facts = f"{produced} characters produced, {kept} kept"
    if kept >= HARD_CEILING:
        facts += ", the most one call can return"
    return f"[output truncated: {facts}; {_whereabouts(artifact)}]"


def _whereabouts(artifact: Artifact | None) -> str:
    if artifact is None:
        return "the rest was not kept"
    if artifact.missing:
        return f"all but {artifact.missing} characters in {artifact.path}"
    return f"full text in {artifact.path}"


class PollWindow:
    """How much of unread text a poll shows: all, or both ends with a marker between.

    Text and marker together never exceed the cap. Where that leaves no room for two
    ends, the head alone is shown.
    """

    def __init__(self, cap: int, *, path_length: int) -> None:
        self.cap = cap
        room = cap - path_length - _GAP_LENGTH
        self.is_split = cap >= _MIN_SPLIT_CAP and room >= _MIN_SPLIT_CAP // 4
        self.head = room // 2 if self.is_split else cap
        self.tail = cap - self.head

    def gap(
        self, before: str, *, total: int, artifact: Artifact | None
    ) -> tuple[str, int]:
        """Return the marker after `before`, and how long the end behind it may be."""

        def marker(omitted: int) -> str:
            lead = "" if before.endswith("\n") else "\n"
            place = _whereabouts(artifact)
            return f"{lead}[{omitted} characters omitted here; {place}]\n"

        length = self.cap - self.head - len(marker(total))
        return marker(total - self.head - length), length
