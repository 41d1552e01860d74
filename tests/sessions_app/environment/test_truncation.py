"""What is kept of a text does not depend on the pieces it comes in."""

import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessions_app.environment import ToolContext, ToolResult
from sessions_app.environment.background import UnreadText, clamp_yield_ms
from sessions_app.environment.close_out import CloseOut, Verdict
from sessions_app.environment.truncation import (
    HARD_CEILING,
    HeadText,
    cut_marker,
    effective_cap,
)
from tests.sessions_app.environment.calls import checked
from traces_app.omnimessage import StopReason

texts = st.lists(st.text("ab\n\U0001f427", max_size=30), max_size=12)


@given(texts, st.integers(0, 100))
def test_head_is_the_beginning_of_the_whole(parts, cap):
    head = HeadText(cap)
    whole = "".join(parts)

    kept = [head.add(part) for part in parts]

    assert "".join(kept) == head.text == whole[:cap]
    assert head.produced == len(whole)
    assert head.kept == min(cap, len(whole))


@given(texts, st.integers(0, 60), st.integers(0, 60), st.booleans())
def test_unread_text_keeps_both_ends_of_the_whole(parts, head, tail, takes_often):
    unread = UnreadText(head=5)
    unread.add("forgotten")
    unread.restart(head=head, tail=tail)
    whole = "".join(parts)
    taken = ""
    for part in parts:
        unread.add(part)
        taken += unread.take_head() if takes_often else ""
    taken += unread.take_head()

    assert taken == whole[:head]
    assert unread.total == len(whole)
    assert unread.tail() == (whole[head:][-tail:] if tail else "")


@given(texts, st.integers(1, 40), st.sampled_from([None, "[note]"]))
def test_frames_of_any_pieces_join_to_the_same_output(parts, cap, note):
    def output_of(pieces):
        ctx = ToolContext(workspace_dir=Path(), tool_call_id="call_1")
        close_out = CloseOut(ctx, cap=cap)
        messages = [close_out.start()]
        for item in [*pieces, ToolResult(note=note)]:
            text = close_out.text_of(item)
            frame = close_out.delta(text) if text else None
            messages += [frame] if frame else []
        verdict = Verdict(stop_reason=StopReason.COMPLETED)
        return checked([*messages, *close_out.finish(verdict)], "call_1").output

    assert output_of(parts) == output_of(["".join(parts)])


@pytest.mark.parametrize(
    ("configured", "effective"),
    [
        (16_000, 16_000),
        (1, 1),
        (0, HARD_CEILING),
        (-1, HARD_CEILING),
        (10**12, HARD_CEILING),
    ],
)
def test_no_cap_is_larger_than_the_hard_ceiling(configured, effective):
    assert effective_cap(configured) == effective


def test_marker_without_a_file_says_that_the_rest_is_lost():
    marker = cut_marker(produced=10, kept=5, artifact=None)

    assert marker == (
        "[output truncated: 10 characters produced, 5 kept; the rest was not kept]"
    )


@pytest.mark.parametrize(
    ("given_ms", "timeout_ms", "expected"),
    [
        (None, 120_000, 60_000),
        (300, 120_000, 300),
        (0, 120_000, 250),
        (-5, 120_000, 250),
        (99_999, 2000, 1000),
        (99_999, 1100, 250),
        (99_999, 200, 250),
        (200_000, 120_000, 119_000),
        (10_000_000, 0, 10_000_000),
        (10**400, -1, sys.maxsize),
    ],
)
def test_wait_is_kept_between_its_bounds(given_ms, timeout_ms, expected):
    wait_ms = clamp_yield_ms(given_ms, default=60_000, timeout_ms=timeout_ms)

    assert wait_ms == expected
