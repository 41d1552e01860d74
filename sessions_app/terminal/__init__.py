"""One task in a terminal: the same sessions, decisions and record as on the web."""

from sessions_app.terminal.answers import Answers
from sessions_app.terminal.run import Wanted, run_task

__all__ = ["Answers", "Wanted", "run_task"]
