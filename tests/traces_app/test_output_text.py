"""A long output keeps its two ends, and says what lies between."""

from traces_app.output_text import fold


def test_short_output_is_whole():
    folded = fold("one\ntwo\n")

    assert (folded.head, folded.tail, folded.gap) == ("one\ntwo\n", "", "")


def test_many_lines_keep_the_first_and_the_last_ones():
    lines = [f"{number}\n" for number in range(1, 20_001)]

    folded = fold("".join(lines))

    assert folded.head == "".join(lines[:200])
    assert folded.tail == "".join(lines[-299:])
    assert folded.gap == "19,501 lines between"


def test_one_endless_line_is_cut_by_characters():
    folded = fold("x" * 200_000)

    assert len(folded.head) + len(folded.tail) == 60_000
    assert folded.gap == "140,000 characters between"


def test_what_is_shown_of_one_output_stays_below_64_kilobytes():
    for text in ("x" * 10**6, "y\n" * 10**6, ("z" * 500 + "\n") * 2000):
        folded = fold(text)

        assert len(folded.head) + len(folded.tail) < 64 * 1024
        assert text.startswith(folded.head)
        assert text.endswith(folded.tail)
