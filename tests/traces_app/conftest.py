"""A record to work on, and the means to tamper with it behind the product's back."""

import secrets
from collections.abc import Sequence

import pytest
from django.db import connection

from traces_app import writer
from traces_app.append_only import purge_allowed
from traces_app.models import Trace
from traces_app.omnimessage import (
    OmniMessage,
    StopReason,
    assistant_text,
    event,
    tool_call,
    tool_call_output,
    user_text,
)
from traces_app.omnimessage import payloads as p


def session_meta(session_id: str) -> OmniMessage:
    return event(
        p.SessionMeta(
            session_id=session_id,
            provider="demo",
            model_id="demo",
            model_context_window=200_000,
            system_prompt="You help.",
            workspace="/srv/w",
        )
    )


def decision(call_id: str, word: str = "allow") -> OmniMessage:
    return event(
        p.ApprovalDecision(
            decision=word,
            tool_call_id=call_id,
            source="user",
            via="button",
            mode="always-ask",
            decided_by="ann",
            arguments_sha256="0" * 64,
        )
    )


def turn(call_id: str = "call_1") -> list[OmniMessage]:
    """A whole turn: a request with one call, allowed and run, and the answer."""
    return [
        user_text("List the files."),
        event(p.RequestBegin()),
        tool_call("exec_command", '{"cmd": "ls"}', call_id),
        event(p.RequestEnd(status=StopReason.COMPLETED)),
        decision(call_id),
        event(p.ToolStarted(tool_call_id=call_id)),
        tool_call_output(call_id, "a.txt\n", StopReason.COMPLETED),
        event(p.RequestBegin()),
        assistant_text("There is one file."),
        event(p.RequestEnd(status=StopReason.COMPLETED)),
    ]


TURN_EVENTS = 11  # with the session_meta


@pytest.fixture
def make_trace():
    """Make a record: its session_meta, then messages, signed at its end."""

    def make(
        messages: Sequence[OmniMessage] = (),
        *,
        session_id: str = "",
        signed: bool = True,
    ) -> Trace:
        session_id = session_id or f"session-2026-01-01-00-00-00-{secrets.token_hex(4)}"
        trace = writer.create_trace(session_id, project="default", owner="ann")
        writer.append(
            trace.pk, [session_meta(session_id), *messages], checkpoint=signed
        )
        return trace

    return make


@pytest.fixture
def trace(make_trace) -> Trace:
    """A record of one whole turn."""
    return make_trace(turn())


@pytest.fixture
def tamper():
    """Run SQL past the triggers, as somebody with the database in hand can."""

    def run(sql: str, *values):
        with purge_allowed(), connection.cursor() as cursor:
            cursor.execute(sql, values)
            return cursor.rowcount

    return run
