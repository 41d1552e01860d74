"""The aggregator: pieces fold into the complete message."""

from traces_app.omnimessage import Aggregator, OmniMessage, StopReason, user_text
from traces_app.omnimessage import payloads as p


def text(event_type: str, words: str = "") -> OmniMessage:
    payload = p.PartialText(role="assistant", event_type=event_type, text=words)
    return OmniMessage(payload=payload)


def output(event_type: str, call: str, **fields) -> OmniMessage:
    payload = p.PartialToolCallOutput(
        role="user", event_type=event_type, tool_call_id=call, **fields
    )
    return OmniMessage(payload=payload)


def feed_all(*pieces: OmniMessage):
    aggregator = Aggregator()
    complete = [each for piece in pieces if (each := aggregator.feed(piece))]
    return aggregator, complete


def test_text_folds_at_its_stop():
    _, complete = feed_all(
        text("start"), text("delta", "a"), text("delta", "b"), text("stop")
    )

    assert [message.payload.text for message in complete] == ["ab"]


def test_thinking_and_text_are_kept_apart():
    thought = p.PartialThinking(role="assistant", event_type="delta", thinking="hm")

    aggregator, _ = feed_all(text("delta", "a"), OmniMessage(payload=thought))

    assert [message.kind for message in aggregator.flush()] == ["text", "thinking"]


def test_tool_call_keeps_name_and_argument_text():
    def piece(event_type, **fields):
        return OmniMessage(
            payload=p.PartialToolCall(
                role="assistant", event_type=event_type, tool_call_id="c", **fields
            )
        )

    _, complete = feed_all(
        piece("start", name="exec_command"),
        piece("delta", arguments='{"cmd":'),
        piece("delta", arguments=' "ls"}'),
        piece("stop"),
    )

    payload = complete[0].payload
    assert (payload.name, payload.arguments) == ("exec_command", '{"cmd": "ls"}')


def test_outputs_of_parallel_calls_fold_with_images_and_reason():
    _, complete = feed_all(
        output("start", "a"),
        output("start", "b"),
        output("delta", "b", output="two"),
        output("delta", "a", output="one", images=("data:image/png;base64,AA",)),
        output("stop", "b", stop_reason=StopReason.FAILED),
        output("stop", "a"),
    )

    assert [message.payload.tool_call_id for message in complete] == ["b", "a"]
    assert complete[0].payload.stop_reason is StopReason.FAILED
    assert complete[1].payload.images == ("data:image/png;base64,AA",)


def test_flush_closes_what_is_open_in_order():
    aggregator, complete = feed_all(
        output("delta", "a", output="cut"), text("delta", "t")
    )

    flushed = aggregator.flush()

    assert complete == []
    assert [message.kind for message in flushed] == ["tool_call_output", "text"]
    assert flushed[0].payload.stop_reason is StopReason.ABORTED
    assert aggregator.flush() == []


def test_complete_messages_pass_by():
    aggregator, complete = feed_all(user_text("x"))

    assert (complete, aggregator.flush()) == ([], [])
