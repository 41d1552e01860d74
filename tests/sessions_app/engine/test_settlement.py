"""What follows a crash: every call answered once, every request ended, nothing run."""

from __future__ import annotations

import pytest

from sessions_app.engine import History
from sessions_app.engine.settlement import restart_denial, settlement
from tests.sessions_app.engine.scripted import Tools, call, say
from tests.sessions_app.engine.story import Story, kinds, only, words
from traces_app.omnimessage import OmniMessage, StopReason, event
from traces_app.omnimessage import payloads as p


def settle(*messages: OmniMessage) -> list[OmniMessage]:
    tools = Tools()
    history = History.from_messages(messages)
    return settlement(history, deny=lambda call: restart_denial(tools, call))


def decided(decision: str, source: str = "user", name: str = "c1") -> OmniMessage:
    return event(
        p.ApprovalDecision(
            decision=decision,
            tool_call_id=name,
            source=source,
            via="auto",
            arguments_sha256="0",
        )
    )


A_CALL = call("a")[-1]
PROMPT = OmniMessage(payload=p.Text(role="user", text="go"))
BEGIN = event(p.RequestBegin())
END = event(p.RequestEnd(status=StopReason.COMPLETED))
STARTED = event(p.ToolStarted(tool_call_id="c1"))


def test_whole_record_needs_nothing():
    assert settle(PROMPT, BEGIN, *say("hi")[-1:], END) == []


def test_running_call_gets_an_output_that_says_effects_are_unknown():
    (output,) = settle(PROMPT, BEGIN, A_CALL, END, decided("allow"), STARTED)

    assert output.payload.stop_reason is StopReason.ABORTED
    assert "side effects is unknown" in output.payload.output


def test_approved_call_that_did_not_start_is_closed_and_says_so():
    (output,) = settle(PROMPT, BEGIN, A_CALL, END, decided("allow"))

    assert output.payload.output == "[not run: the server restarted before it started]"


def test_denied_call_without_output_gets_the_denied_text():
    (output,) = settle(PROMPT, BEGIN, A_CALL, END, decided("deny"))

    assert output.payload.output == "Tool call denied by user."


def test_undecided_call_of_a_complete_request_is_left_to_a_person():
    assert settle(PROMPT, BEGIN, A_CALL, END) == []


def test_undecided_call_of_a_cut_request_is_denied():
    end, decision, output = settle(PROMPT, BEGIN, A_CALL)

    assert end.payload.status is StopReason.ABORTED
    assert (decision.payload.decision, decision.payload.source) == ("deny", "restart")
    assert output.payload.output.startswith("[not run: ")


def test_cut_compaction_is_closed_as_failed():
    begin = event(p.CompactionBegin(reason="context_length", mode="summary"))

    end, closing = settle(PROMPT, BEGIN, *say("hi")[-1:], END, begin, BEGIN)

    assert end.payload.status is StopReason.ABORTED
    assert closing.payload.status is StopReason.FAILED


async def test_run_after_a_crash_during_a_request_tells_what_was_decided():
    history = History.from_messages([PROMPT, BEGIN, A_CALL, decided("allow"), STARTED])
    story = Story(say("done"), history=history)

    seen = await story.run("and now?")

    assert kinds(seen)[:4] == ["request_end", "tool_call_output", "text", "text"]
    assert story.tools.started == []
    block, prompt = words(story.model.requests[0].messages)
    assert '{"request": "go"}' in block
    assert "side effects is unknown" in block
    assert prompt == "and now?"


async def test_half_text_of_a_crashed_request_is_dropped_and_the_input_sent_again():
    story = Story(say("done"), history=History.from_messages([PROMPT, BEGIN]))

    await story.run("hello?")

    assert words(story.model.requests[0].messages) == ["go", "hello?"]


@pytest.mark.parametrize("cut", range(1, 24))
async def test_record_cut_anywhere_goes_on_with_valid_pairs(cut):
    first = Story(
        [*say("look"), *call("a", wire_id="c1"), *call("b", wire_id="c2")],
        [*call("a", wire_id="c3")],
        say("done"),
    )
    await first.run("go")
    before = first.recorded[:cut]

    second = Story(say("recovered"), say("fine"), history=History.from_messages(before))
    await second.run("go on")

    everything = [*before, *second.recorded]
    calls = [c.tool_call_id for c in only(everything, "tool_call")]
    assert [d.tool_call_id for d in only(everything, "approval_decision")] == sorted(
        calls
    )
    assert sorted(o.tool_call_id for o in only(everything, "tool_call_output")) == (
        sorted(calls)
    )
    assert kinds(everything).count("request_begin") == kinds(everything).count(
        "request_end"
    )
    assert History.from_messages(everything) == second.loop.history
