"""The loop: turns, order of record and stream, queued messages, the turn cap."""

from __future__ import annotations

from tests.sessions_app.engine.scripted import Story, call, kinds, say


async def test_turn_without_tool_calls_ends_the_task():
    story = Story(say("hello"))

    seen = await story.run("hi")

    assert kinds(seen) == [
        "text",
        "tool_list_ready",
        "request_begin",
        "text",
        "request_end",
        "token_usage",
    ]
    assert len(story.model.requests) == 1


async def test_next_request_comes_only_after_every_call_has_its_output():
    story = Story([*call("a", wire_id="c1"), *call("b", wire_id="c2")], say("done"))

    seen = await story.run("go")

    second_begin = [i for i, m in enumerate(seen) if m.kind == "request_begin"][1]
    outputs = [i for i, m in enumerate(seen) if m.kind == "tool_call_output"]
    assert len(outputs) == 2
    assert max(outputs) < second_begin
