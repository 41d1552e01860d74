"""Lines of standard input: from pipes, files and terminals, until the end."""

from __future__ import annotations

import asyncio
import os
import pty
from pathlib import Path

import pytest

from sessions_app.terminal import Answers


@pytest.fixture
def pipe():
    reader, writer = os.pipe()
    open_ends = {reader, writer}

    def close_writer():
        os.close(writer)
        open_ends.discard(writer)

    yield reader, writer, close_writer
    for end in open_ends:
        os.close(end)


async def test_each_line_is_one_answer(pipe):
    reader, writer, close = pipe
    os.write(writer, b"y\nno\n\nlast")
    close()
    answers = Answers(reader)

    assert [await answers.line() for _ in range(5)] == ["y", "no", "", "last", None]


async def test_a_line_that_comes_in_pieces_is_waited_for(pipe):
    reader, writer, _ = pipe
    answers = Answers(reader)
    reading = asyncio.create_task(answers.line())
    os.write(writer, b"ye")
    await asyncio.sleep(0.02)
    assert not reading.done()

    os.write(writer, b"s\n")

    assert await reading == "yes"


async def test_a_question_that_is_taken_back_eats_no_answer(pipe):
    reader, writer, _ = pipe
    answers = Answers(reader)
    reading = asyncio.create_task(answers.line())
    await asyncio.sleep(0)
    reading.cancel()
    await asyncio.wait({reading})

    os.write(writer, b"y\n")

    assert await answers.line() == "y"


async def test_a_plain_file_and_no_input_at_all_work_too(tmp_path):
    file = tmp_path / "answers"
    file.write_text("y\n")
    with file.open("rb", buffering=0) as opened:
        answers = Answers(opened.fileno())
        assert [await answers.line(), await answers.line()] == ["y", None]
    with Path(os.devnull).open("rb", buffering=0) as nothing:
        assert await Answers(nothing.fileno()).line() is None
    assert await Answers(None).line() is None


async def test_what_was_typed_before_the_question_does_not_answer_it():
    master, terminal = pty.openpty()
    try:
        os.write(master, b"y\n")
        answers = Answers(terminal)

        answers.forget_typed()
        os.write(master, b"n\n")

        assert await answers.line() == "n"
    finally:
        os.close(master)
        os.close(terminal)


async def test_answers_in_a_pipe_are_kept(pipe):
    reader, writer, _ = pipe
    os.write(writer, b"y\n")
    answers = Answers(reader)

    answers.forget_typed()

    assert await answers.line() == "y"
