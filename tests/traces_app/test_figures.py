"""Figures as people read them."""

import pytest

from traces_app import figures


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [(0, "0.0 s"), (240, "0.2 s"), (59_940, "59.9 s"), (187_000, "3:07 min")]
    + [(7_500_000, "2:05 h"), (-5, "0.0 s")],
)
def test_durations(milliseconds, text):
    assert figures.duration(milliseconds) == text


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0:00"), (41, "0:41"), (3723, "1:02:03"), (-1, "0:00")]
)
def test_clocks(seconds, text):
    assert figures.elapsed(seconds) == text


@pytest.mark.parametrize(
    ("count", "text"), [(412, "412 B"), (3100, "3.1 KB"), (3_100_000, "3.1 MB")]
)
def test_sizes(count, text):
    assert figures.size(count) == text


@pytest.mark.parametrize(
    ("count", "text"),
    [(999, "999"), (12_400, "12.4 k"), (200_000, "200 k"), (4_100_000, "4.1 M")],
)
def test_numbers(count, text):
    assert figures.number(count) == text


def test_counts_agree_with_their_noun():
    assert figures.count(1, "call waits", "calls wait") == "1 call waits"
    assert figures.count(12_031, "line", "lines") == "12,031 lines"
