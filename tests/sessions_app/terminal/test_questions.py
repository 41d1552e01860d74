"""What a person at the terminal sees of a call before deciding."""

from __future__ import annotations

import json

from sessions_app.models import ApprovalRequest
from sessions_app.terminal.questions import question


def asked(name: str = "exec_command", **more) -> str:
    fields = {
        "name": name,
        "arguments": json.dumps({"cmd": "ls"}),
        "workdir": "/srv/dir",
        "permission": "rw",
        "asked_because": "mode always-ask",
    }
    return question(ApprovalRequest(**{**fields, **more}))


def test_it_shows_tool_directory_arguments_and_why():
    assert asked().splitlines() == [
        "",
        "exec_command (read-write) waits for your decision",
        "  in /srv/dir",
        "  cmd: ls",
        "  asked because: mode always-ask",
        "Allow this call? Only y or yes allows: ",
    ]


def test_it_says_which_subagent_asks():
    assert "  of subagent session-child\n" in asked(origin=["session-child"])


def test_long_arguments_are_shown_whole():
    command = "\n".join(f"echo line {number}" for number in range(200))
    text = asked(arguments=json.dumps({"cmd": command, "yield_time_ms": 5}))

    for number in (0, 12, 40, 199):
        assert f"    echo line {number}\n" in text
    assert "  yield_time_ms: 5\n" in text


def test_a_line_longer_than_any_fold_is_one_line():
    command = "echo " + "x" * 9000

    assert f"  cmd: {command}\n" in asked(arguments=json.dumps({"cmd": command}))


def test_hidden_characters_are_escapes():
    text = asked(
        name="exec\u200b_command",
        arguments=json.dumps({"cmd": "ls \x1b[8m; rm x\u202e"}),
        workdir="/a\u00a0b",
    )

    assert "exec\\u{200b}_command" in text
    assert "ls \\u{1b}[8m; rm x\\u{202e}" in text
    assert "/a\\u{a0}b" in text
    assert "2 hidden characters are escaped" in text


def test_arguments_that_do_not_parse_are_shown_raw():
    text = asked(arguments='{"cmd": ')

    assert '  arguments: {"cmd": \n' in text
    assert "Once decided, it fails." in text


def test_a_tool_nobody_knows_is_called_unknown():
    assert "(unknown tool)" in asked(permission="", workdir=None)
