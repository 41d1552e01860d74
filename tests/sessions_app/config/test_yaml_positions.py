"""YAML with positions: values, places, and what is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessions_app.config.yaml_positions import MAX_CHARACTERS, Document, parse


def only_problem(text: str) -> tuple[int, int, str]:
    document = parse(text)

    assert len(document.problems) == 1
    problem = document.problems[0]
    return problem.line, problem.column, problem.message


def test_plain_document_becomes_plain_values() -> None:
    document = parse("a: 1\nb: [x, 2.5, true, null]\nc:\n  d: 'on'\n")

    assert document.value == {"a": 1, "b": ["x", 2.5, True, None], "c": {"d": "on"}}
    assert document.problems == []


def test_every_value_and_key_has_its_place() -> None:
    document = parse("a: 1\nb:\n  - c: x\n")

    assert document.values[("b", 0, "c")] == (3, 8)
    assert document.keys[("b", 0, "c")] == (3, 5)


def test_problem_of_a_missing_path_points_to_the_nearest_ancestor() -> None:
    document = parse("a: 1\nb:\n  - c: x\n")

    problem = document.problem(("b", 0, "name"), "is missing")

    assert (problem.path, problem.line, problem.column) == ("b[0].name", 3, 5)


def test_problem_without_any_place_stands_at_the_beginning() -> None:
    problem = Document().problem((), "wrong")

    assert str(problem) == "1:1: (document): wrong"


def test_duplicate_key_names_the_line_of_the_first() -> None:
    assert only_problem("a: 1\nb: 2\na: 3\n") == (
        3,
        1,
        "duplicate key; the first one is on line 1",
    )


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ("a: 1\n  b: 2\n", 2, 4),
        ("a: 1\nb: 'open\nc: 3\n", 2, 4),
        ("a: [1, 2\n", 1, 4),
        ("a: 1\nb: [\n\n", 2, 4),
        ("a:\n\tb: 1\n", 2, 1),
        ("a: 1\nb: x\0y\n", 2, 5),
        ("a: *nowhere\n", 1, 4),
        ("a: 1\n---\nb: 2\n", 2, 1),
    ],
)
def test_syntax_error_has_line_and_column(text: str, line: int, column: int) -> None:
    assert only_problem(text)[:2] == (line, column)


@pytest.mark.parametrize("text", ["", "\n\n", "# only a comment\n"])
def test_empty_document_is_a_problem(text: str) -> None:
    assert only_problem(text) == (1, 1, "the document is empty")


def test_date_stays_text() -> None:
    assert parse("a: 2024-02-01\n").value == {"a": "2024-02-01"}


def test_key_that_is_no_text_must_be_quoted() -> None:
    _, _, message = only_problem("on: 1\n")

    assert "quotes" in message
    assert parse("'on': 1\n").value == {"on": 1}


@pytest.mark.parametrize(
    "text",
    [
        "a: !!python/object/apply:os.system [true]\n",
        "a: !custom x\n",
        "a: !!binary aGk=\n",
        "a: !!set {x}\n",
        "<<: {a: 1}\n",
        "? [1, 2]\n: x\n",
        "a: .inf\n",
        'a: "x\\0y"\n',
        'a: "\\ud800"\n',
    ],
)
def test_what_json_cannot_say_is_refused(text: str) -> None:
    assert only_problem(text)[0] == 1


def test_anchor_may_be_used_again() -> None:
    assert parse("a: &x [1]\nb: *x\n").value == {"a": [1], "b": [1]}


def test_anchors_that_multiply_are_bounded() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]

    assert "unfolds" in only_problem("\n".join(lines))[2]


@pytest.mark.parametrize("text", ["a: &x [*x]\n", "[" * 5000, "[" * 100 + "]" * 100])
def test_endless_nesting_is_bounded(text: str) -> None:
    assert "nested too deeply" in only_problem(text)[2]


def test_overlong_text_is_not_even_parsed() -> None:
    assert "longer than" in only_problem("a" * (MAX_CHARACTERS + 1))[2]


@given(st.text(max_size=60))
def test_no_text_raises(text: str) -> None:
    document = parse(text)

    for problem in document.problems:
        assert problem.line >= 1
        assert problem.column >= 1
