"""A task in a terminal of the test's own."""

from __future__ import annotations

import io
import json
import os
from dataclasses import dataclass

import pytest

from sessions_app import terminal


@dataclass
class Done:
    """What a finished run left behind."""

    code: int
    out: str
    err: str

    @property
    def messages(self) -> list[dict]:
        """The OmniMessages of a run with `--json`."""
        return [json.loads(line) for line in self.out.splitlines()]

    def payloads(self, kind: str) -> list[dict]:
        found = [m["payload"] for m in self.messages]
        return [payload for payload in found if payload.get("type") == kind]


@pytest.fixture
def run(transactional_db, project, tmp_path):
    """Run a task; `answers` is what standard input holds."""

    async def run(message: str, *, answers: str = "", **wanted) -> Done:
        reader, writer = os.pipe()
        os.write(writer, answers.encode())
        os.close(writer)
        out, err = io.StringIO(), io.StringIO()
        try:
            code = await terminal.run_task(
                terminal.Wanted(
                    message=message, **{"workspace": str(tmp_path), **wanted}
                ),
                out=out,
                err=err,
                answers=terminal.Answers(reader),
            )
        finally:
            os.close(reader)
        return Done(code=code, out=out.getvalue(), err=err.getvalue())

    return run
