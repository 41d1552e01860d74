"""What is left of a pipe's bytes when a terminal's effects are resolved."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sessions_app.environment.terminal_text import LIMIT, TerminalText


def resolved(*blocks: bytes) -> str:
    text = TerminalText()
    return "".join(text.feed(text.decode(block)) for block in blocks) + text.finish()


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("first\rsecond\nthird\n", "second\nthird\n"),
        ("long line\rlo\n", "long line\n"),
        ("a\r\nb\r\n", "a\nb\n"),
        ("abc\b\bX\n", "aXc\n"),
        ("a\b\b\bX\n", "X\n"),
        ("one\rtwo\x1b[K\n", "two\n"),
        ("12345\r\x1b[Kab\n", "ab\n"),
        ("12345\x1b[2D\x1b[KX\n", "123X\n"),
        ("12345\x1b[2D\x1b[1KX\n", "   X5\n"),
        ("12345\r\x1b[2Kab\n", "ab\n"),
        ("ab\x1b[3Cc\n", "ab   c\n"),
        ("ab\x1b[1Gc\n", "cb\n"),
        ("ab\x1b[Gc\n", "cb\n"),
        ("ab\x1b[4`c\n", "ab c\n"),
        ("ab\x1b[99Dc\n", "cb\n"),
        ("a\x1b[?Kb\x1b[1;2Kc\n", "abc\n"),
        ("".join(f"\r{n:3d}%" for n in range(101)) + "\n", "100%\n"),
    ],
)
def test_effects_are_resolved_inside_the_open_line(raw, expected):
    assert resolved(raw.encode()) == expected


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("a\x1b[2Jb\x1b[10;10Hc\x1b]0;title\x07d\n", "abcd\n"),
        ("\x1b[1;31mred\x1b[0m\n", "red\n"),
        ("\x1b[38;5;196mred\x1b[m\n", "red\n"),
        ("\x1b]8;;https://example.org\x1b\\link\x1b]8;;\x1b\\\n", "link\n"),
        ("a\x1bP1$r0m\x1b\\b\x1b_x\x1b\\c\x1b^y\x1b\\d\x1bXz\x1b\\e\n", "abcde\n"),
        ("\x1b(Bplain\x1b)0\n", "plain\n"),
        ("\x1b[?25l\x1b[?1049hx\x1b=\x1b>\x1b7\x1b8\n", "x\n"),
        ("\x1b[Aup\x1b[Bdown\x1b[s\x1b[u\n", "updown\n"),
        (
            "bell\x07 shift\x0e\x0f form\x0c tab\tdel\x7f\n",
            "bell shift form tab\tdel\n",
        ),
        ("\x9b31mred\x9b0m \x9d0;title\x9cx\x85\n", "red x\n"),
        ("a\x1b\x1b[31mb\n", "ab\n"),
        ("a\x1b\nb\n", "a\nb\n"),
        ("a\x1b[12\x1b[31mb\n", "ab\n"),
        ("a\x1b[3é\n", "aé\n"),
        ("a\x1b]0;t\x18b\n", "ab\n"),
    ],
)
def test_everything_else_is_removed_without_effect(raw, expected):
    assert resolved(raw.encode()) == expected


@pytest.mark.parametrize("start", ["\x1b]0;", "\x1bP", "\x1b[", "\x1b[12;", "\x1b("])
def test_sequence_that_is_not_ended_ends_with_the_line(start):
    assert resolved(f"a{start}\nnext line\n".encode()) == "a\nnext line\n"


def test_control_string_without_end_swallows_no_more_than_its_limit():
    raw = "\x1b]0;" + "x" * 10_000 + "\nnext\n"

    text = resolved(raw.encode())

    assert text == "x" * (10_000 - LIMIT + 2) + "\nnext\n"


def test_parameters_without_end_swallow_no_more_than_their_limit():
    text = resolved(b"\x1b[" + b"1" * 10_000 + b"\n")

    assert text == "1" * (10_000 - LIMIT) + "\n"


def test_character_split_over_reads_is_whole():
    assert resolved(b"\xe4\xbd", b"\xa0X") == "你X"


def test_half_a_character_at_the_end_is_replaced_once():
    assert resolved(b"ok\xe4\xbd") == "ok\ufffd"


def test_characters_at_a_read_boundary_are_not_damaged():
    raw = ("a" * 4095 + "é" * 10).encode()

    assert resolved(raw[:4096], raw[4096:]) == "a" * 4095 + "é" * 10


def test_nul_is_made_visible():
    assert resolved(b"a\0b\n") == "a\u2400b\n"


def test_line_is_given_out_when_it_is_closed():
    text = TerminalText()

    assert text.feed("open") == ""
    assert text.open_line == "open"
    assert text.feed(" line\nnext") == "open line\n"
    assert text.open_line == "next"


def test_what_was_given_out_is_fixed():
    text = TerminalText()
    text.feed("10%")

    assert text.flush() == "10%"
    assert text.feed("\r20%\n") == "20%\n"


def test_line_with_overwriting_is_no_prompt():
    text = TerminalText()
    assert not text.may_be_prompt

    text.feed("name? ")
    assert text.may_be_prompt
    text.feed("\r")
    assert not text.may_be_prompt
    text.feed("\nnext")
    assert text.may_be_prompt


def test_overlong_line_is_given_out_as_it_grows():
    text = TerminalText()

    assert text.feed("x" * LIMIT) == ""
    assert text.feed("y") == "x" * LIMIT + "y"
    assert text.feed("z") == "z"
    assert text.feed("\rab") == ""
    assert text.feed("\n") == "ab\n"


def test_overlong_line_is_no_reason_to_keep_frames():
    text = TerminalText()
    text.feed("x" * (LIMIT + 1))

    frames = "".join(text.feed(f"\r{n:3d}%") for n in range(101))

    assert frames + text.finish() == "100%"


# Bytes that matter to the parser, and few others: mistakes are near.
pieces = st.sampled_from(
    [
        *(b"\r", b"\n", b"\b", b"\t", b"\0", b"\x07", b"\x18", b"\x1b", b"\x7f"),
        *(b"[", b"]", b"P", b"\\", b"(", b"B", b";", b"?", b" "),
        *(b"0", b"1", b"2", b"12", b"K", b"C", b"D", b"G", b"`", b"m", b"J", b"H"),
        *(b"x", b"yz", b"\xe4\xbd", b"\xa0", b"\xff", b"\xc2\x9b", b"\xc2\x9d"),
        *("é".encode(), "\U0001f427".encode(), b"a" * 1500, b"\x1b[K", b"\x1b]0;"),
    ]
)
streams = st.lists(pieces, max_size=60).map(b"".join) | st.binary(max_size=200)


@given(st.data(), streams)
def test_any_split_of_the_bytes_gives_the_same_text(data, stream):
    cuts = data.draw(st.lists(st.integers(0, len(stream)), max_size=12))
    edges = [0, *sorted(cuts), len(stream)]
    blocks = [stream[a:b] for a, b in zip(edges, edges[1:], strict=False)]

    assert resolved(*blocks) == resolved(stream)


@given(streams)
def test_single_bytes_give_the_same_text(stream):
    assert resolved(*(bytes([byte]) for byte in stream)) == resolved(stream)


@given(streams)
@example(bytes(range(256)) * 8)
def test_result_is_plain_storable_text(stream):
    text = resolved(stream)

    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]", text)
    text.encode()


@given(st.text(st.characters(codec="utf-8", exclude_categories=["Cc"])))
def test_plain_text_is_not_changed(text):
    assert resolved(text.encode()) == text


@given(st.lists(st.text("ab\r\b", max_size=20), max_size=8))
def test_lines_do_not_depend_on_each_other(lines):
    whole = resolved("".join(f"{line}\n" for line in lines).encode())

    assert whole == "".join(resolved(f"{line}\n".encode()) for line in lines)
