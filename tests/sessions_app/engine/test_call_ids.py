"""Ids: the model's own where they are new and usable, else ours; the same everywhere."""

from __future__ import annotations

import re

import pytest

from sessions_app.engine.call_ids import CallIds
from sessions_app.llm.client import LLMError
from tests.sessions_app.engine.scripted import call, half_call, say
from tests.sessions_app.engine.story import Story, only

OURS = re.compile(r"call_[0-9a-f]{8}")


async def test_id_used_in_an_earlier_turn_is_replaced_on_record_and_for_the_model():
    story = Story(call("a", wire_id="call_0"), call("a", wire_id="call_0"), say("done"))

    await story.run("go")

    first, second = [c.tool_call_id for c in only(story.recorded, "tool_call")]
    assert first == "call_0"
    assert OURS.fullmatch(second)
    about = [
        m.payload.tool_call_id
        for m in story.seen
        if hasattr(m.payload, "tool_call_id") and m.payload.tool_call_id == second
    ]
    assert len(about) == 4 + 3 + 3  # the call's pieces, the output's, the messages
    sent = story.model.requests[2].messages
    assert [m.payload.tool_call_id for m in sent if m.kind == "tool_call"] == [
        first,
        second,
    ]
    assert story.tools.started == [first, second]


async def test_id_repeated_in_one_answer_is_replaced():
    story = Story([*call("a", wire_id="x"), *call("b", wire_id="x")], say("done"))

    await story.run("go")

    first, second = [c.tool_call_id for c in only(story.recorded, "tool_call")]
    assert first == "x"
    assert OURS.fullmatch(second)


async def test_id_of_a_failed_attempt_is_not_used_again():
    story = Story(
        [*call("a", wire_id="x"), LLMError("503")], call("a", wire_id="x"), say("done")
    )

    await story.run("go")

    ids = [c.tool_call_id for c in only(story.recorded, "tool_call")]
    assert len(set(ids)) == 2
    assert len(only(story.recorded, "tool_call_output")) == 2


async def test_id_of_a_call_that_never_was_one_may_come_again():
    story = Story(
        [*half_call("a", "{", wire_id="x"), LLMError("503")],
        call("a", wire_id="x"),
        say("done"),
    )

    await story.run("go")

    assert [c.tool_call_id for c in only(story.recorded, "tool_call")] == ["x"]


@pytest.mark.parametrize("wire_id", ["", "a/b", "a b", "<b>", "x" * 65, "é", "a\n"])
def test_id_that_cannot_stand_in_an_address_is_replaced(wire_id):
    assert OURS.fullmatch(CallIds(set()).for_call(wire_id))


@pytest.mark.parametrize("wire_id", ["call_1", "toolu_01A", "functions.exec:0", "7"])
def test_usable_id_of_the_model_is_kept(wire_id):
    assert CallIds(set()).for_call(wire_id) == wire_id


def test_pieces_and_call_get_the_same_new_id():
    ids = CallIds({"x"})

    pieces = {ids.for_piece("x"), ids.for_piece("x")}

    assert {ids.for_call("x")} == pieces
    assert ids.for_call("x") not in pieces
