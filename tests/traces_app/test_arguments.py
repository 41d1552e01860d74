"""Arguments are shown whole, and nothing in them can hide."""

import json

import pytest

from traces_app.arguments import read_arguments


def text_of(line):
    return "".join(span.text for span in line)


def shown(name, **values):
    return read_arguments(name, json.dumps(values))


def test_command_stands_apart_from_the_other_arguments():
    arguments = shown("exec_command", cmd="make\nmake test", workdir="sub")

    assert [text_of(line) for line in arguments.command.head] == ["make", "make test"]
    assert [text_of(row.name) for row in arguments.rows] == ["workdir"]


@pytest.mark.parametrize(
    ("hidden", "escape"),
    [
        ("\u200b", r"\u{200b}"),  # zero width space
        ("\u202e", r"\u{202e}"),  # right-to-left override
        ("\x1b", r"\u{1b}"),
        ("\r", r"\u{d}"),
        ("\x00", r"\u{0}"),
        ("\u2028", r"\u{2028}"),
        ("\u00a0", r"\u{a0}"),  # a blank that is no space
        ("\u3164", r"\u{3164}"),  # a letter that draws nothing
        ("\ufe0f", r"\u{fe0f}"),
        ("\U000e0041", r"\u{e0041}"),  # a tag character
    ],
)
def test_hidden_character_becomes_an_escape_and_is_counted(hidden, escape):
    arguments = shown("exec_command", cmd=f"ls{hidden}x")

    assert text_of(arguments.command.head[0]) == f"ls{escape}x"
    assert arguments.escapes == 1


def test_ordinary_letters_of_any_script_are_left_alone():
    arguments = shown("exec_command", cmd="echo 'Ünïcödé 你好 ñ €'")

    assert arguments.escapes == 0


def test_long_run_of_blanks_is_named():
    arguments = shown("exec_command", cmd="ls" + " " * 200 + "; rm -rf /")

    assert text_of(arguments.command.head[0]) == "ls[200 blanks]; rm -rf /"
    assert arguments.escapes == 1


def test_name_of_an_argument_is_spelled_too():
    arguments = shown("tool", **{"a\u202eb": 1})

    assert text_of(arguments.rows[0].name) == r"a\u{202e}b"


@pytest.mark.parametrize(
    "raw", ["{broken", "[1]", '"text"', "", '{"cmd": "a", "cmd": "b"}', "9" * 5000]
)
def test_arguments_that_are_no_object_are_shown_raw_with_a_warning(raw):
    arguments = read_arguments("exec_command", raw)

    assert arguments.problem
    assert arguments.command is None
    assert "".join(map(text_of, arguments.rows[0].head))[:20] == raw[:20]


def test_value_of_more_than_forty_lines_is_folded_and_whole():
    lines = [f"line {number}" for number in range(52)]

    command = shown("exec_command", cmd="\n".join(lines)).command

    assert command.rest
    assert [text_of(line) for line in (*command.head, *command.rest)] == lines
    assert command.count == 52


def test_line_of_more_than_four_kilobytes_is_folded_as_one_line():
    command = shown("exec_command", cmd="x" * 5000).command

    assert text_of(command.head[0]) + text_of(command.rest[0]) == "x" * 5000
    assert command.is_line_cut
    assert command.count == 1


def test_string_that_reads_like_a_number_keeps_its_quotes():
    rows = shown("tool", a="5", b=5).rows

    assert [text_of(row.head[0]) for row in rows] == ['"5"', "5"]


def test_last_newline_of_an_input_is_seen():
    arguments = shown("input_command", process_id="proc-1", chars="yes\n")

    assert text_of(arguments.rows[1].head[0]) == r"yes\n"
    assert arguments.escapes == 0


def test_summary_is_one_line():
    assert shown("exec_command", cmd="make\n  test").summary == "make test"
    assert shown("run_subagent", prompt="Do it.", agent_id="x").summary == "Do it."
    assert shown("input_command", process_id="proc-1", chars="y\n").summary == (
        r'proc-1 ← "y\n"'
    )
