"""First messages for the demo model: what there is to see, without a key."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A message to try, and what it shows."""

    title: str
    text: str
    message: str


EXAMPLES = (
    Example(
        title="Approve your first call",
        text="One command, one card. Approve it, then watch the output arrive.",
        message="$ uname -a && ls -la",
    ),
    Example(
        title="Two calls at once",
        text="Two cards in one turn. Decide them in any order, deny one with a reason.",
        message="$ date\n$ rm -rf build/",
    ),
    Example(
        title="A long output",
        text="Beginning and end stay readable, the whole is kept as a file.",
        message="$ seq 1 200000",
    ),
    Example(
        title="Two turns",
        text="The second begins when the first one's results are in.",
        message="$ for i in 1 2 3; do echo line $i; sleep 1; done\n"
        "then\nsay That was **all**.",
    ),
)
