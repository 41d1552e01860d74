"""The codec: every payload round-trips, what is not of the protocol is refused."""

import dataclasses
import json
import typing

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from traces_app.omnimessage import CodecError, OmniMessage, user_text
from traces_app.omnimessage import payloads as p
from traces_app.omnimessage.codec import dumps, loads, storable

KINDS = [p.SessionMeta, *p.MODEL_PAYLOADS, *p.EVENT_PAYLOADS]
TIME = "2026-01-31T09:30:00.123Z"
TEXT = st.text(st.characters(blacklist_categories=("Cs",), blacklist_characters="\x00"))
SCALAR = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | TEXT
JSON = st.recursive(
    SCALAR | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3)
    ),
    max_leaves=8,
)
USAGE = st.builds(p.Usage, cache_read=st.integers(0, 9), output=st.integers(0, 9))


def values_of(hint) -> st.SearchStrategy:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if hint is typing.Any:
        return JSON
    if origin is typing.Literal:
        return st.sampled_from(arguments)
    if origin is tuple:
        return st.lists(values_of(arguments[0]), max_size=2).map(tuple)
    if origin is not None and type(None) in arguments:
        return st.none() | values_of(arguments[0])
    if origin is not None:  # Mapping
        return st.dictionaries(TEXT, values_of(arguments[1]), max_size=3)
    if hint is p.Usage:
        return USAGE
    if hint is p.StopReason:
        return st.sampled_from(p.StopReason)
    numbers = st.floats(0, 1e6, allow_nan=False)
    return {str: TEXT, int: st.integers(0, 2**40), float: numbers}[hint]


@st.composite
def messages(draw) -> OmniMessage:
    kind = draw(st.sampled_from(KINDS))
    hints = typing.get_type_hints(kind)
    values = {
        field.name: draw(values_of(hints[field.name]))
        for field in dataclasses.fields(kind)
        if field.name != "extra"
    }
    origin = draw(st.lists(TEXT, max_size=2).map(tuple))
    return OmniMessage(payload=kind(**values), timestamp=TIME, origin=origin)


@given(messages())
@settings(max_examples=300, deadline=None)
def test_every_payload_makes_the_round_trip(message):
    line = message.to_json()

    assert "\n" not in line
    assert OmniMessage.from_json(line).to_json() == line
    assert OmniMessage.from_json(line).to_dict() == json.loads(line)


@given(messages())
@settings(deadline=None)
def test_every_message_has_time_type_and_payload(message):
    envelope = message.to_dict()

    assert list(envelope)[:3] == ["timestamp", "type", "payload"]
    assert envelope["type"] in ("session_meta", "model_msg", "event_msg")
    assert ("origin" in envelope) == bool(message.origin)


def test_time_is_utc_and_of_now():
    assert user_text("x").timestamp.endswith("Z")


def test_model_messages_say_their_role_and_session_meta_no_type():
    meta = OmniMessage.from_dict(envelope_of("session_meta", META))

    assert user_text("x").to_dict()["payload"]["role"] == "user"
    assert "type" not in meta.to_dict()["payload"]
    assert meta.kind == "session_meta"


META = {
    "session_id": "s",
    "provider": "demo",
    "model_id": "demo",
    "model_context_window": 1,
    "system_prompt": "",
    "workspace": "/w",
}
CALL = {"type": "tool_call", "role": "assistant", "tool_call_id": "c", "name": "n"}


def envelope_of(type_: str, payload: dict, **more) -> dict:
    return {"timestamp": TIME, "type": type_, "payload": payload, **more}


def test_unknown_fields_are_kept():
    text = {
        "type": "text",
        "role": "user",
        "text": "x",
        "theirs": {"z": 1, "a": [None]},
    }
    source = envelope_of("model_msg", text, also_theirs=[1])

    assert OmniMessage.from_dict(source).to_dict() == source


def test_fidelity_goes_back_unchanged():
    fidelity = {"signature": "Ab+/=", "nested": [{"x": 1.5}, None, "\u2028"]}
    source = envelope_of(
        "model_msg",
        {
            "type": "thinking",
            "role": "assistant",
            "thinking": "t",
            "fidelity": fidelity,
        },
    )

    assert OmniMessage.from_json(json.dumps(source)).payload.fidelity == fidelity
    assert OmniMessage.from_dict(source).to_dict() == source


def test_arguments_stay_the_text_the_model_wrote():
    arguments = '{ "cmd" : "ls",  "cmd2": 1.50 }'
    source = envelope_of("model_msg", {**CALL, "arguments": arguments})

    assert OmniMessage.from_dict(source).to_dict()["payload"]["arguments"] == arguments


def test_protocol_names_that_are_python_words_stand_in_the_json():
    payload = p.ModeChanged(from_mode="always-ask", to_mode="allow-all", by="ann")

    written = OmniMessage(payload=payload).to_dict()["payload"]

    assert written == {
        "type": "mode_changed",
        "from": "always-ask",
        "to": "allow-all",
        "by": "ann",
    }


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ([], "expected an object"),
        ({**envelope_of("session_meta", META), "type": "x"}, "type: unknown 'x'"),
        (envelope_of("session_meta", {**META, "provider": 1}), "payload.provider"),
        (envelope_of("session_meta", {}), "missing"),
        (envelope_of("model_msg", CALL), "payload.arguments: missing in tool_call"),
        (envelope_of("model_msg", {**CALL, "arguments": {}}), "expected str"),
        (envelope_of("model_msg", {"type": "request_begin"}), "unknown model_msg"),
        (envelope_of("event_msg", {"type": "text"}), "unknown event_msg"),
        (envelope_of("event_msg", {"type": None}), "unknown event_msg"),
        (envelope_of("event_msg", None), "expected an object"),
        (envelope_of("event_msg", {"type": "request_end", "status": "x"}), "one of"),
        (
            envelope_of("event_msg", {"type": "request_begin", "attempt": True}),
            "expected int",
        ),
        (
            envelope_of("event_msg", {"type": "request_begin", "attempt": "1"}),
            "expected int",
        ),
        (envelope_of("event_msg", {"type": "request_begin"}, origin="s"), "origin"),
        ({**envelope_of("session_meta", META), "timestamp": 1}, "timestamp"),
        ({**envelope_of("session_meta", META), "timestamp": "today"}, "not ISO 8601"),
        ({**envelope_of("session_meta", META), "timestamp": "2026-01-01"}, "time zone"),
    ],
)
def test_what_is_not_of_the_protocol_is_refused_by_name(source, reason):
    with pytest.raises(CodecError, match=reason):
        OmniMessage.from_dict(source)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("", "not valid JSON"),
        ("{", "not valid JSON"),
        ('{"a": NaN}', "NaN"),
        ('{"a": Infinity}', "Infinity"),
        ('{"a": 1, "a": 1}', "duplicate key 'a'"),
        ("[" * 100_000, "nested too deeply"),
    ],
)
def test_what_is_no_json_is_refused(line, reason):
    with pytest.raises(CodecError, match=reason):
        loads(line)


@pytest.mark.parametrize(
    ("text", "stored"),
    [
        ("a\x00b", "a\u2400b"),
        ("a\ud800b", "a\ufffdb"),
        ("\udfff", "\ufffd"),
        ("\ud83d\ude00", "\U0001f600"),
        (r"C:\u0000", r"C:\u0000"),
        ("\\\x00", "\\\u2400"),
        ("plain ünd 漢字", "plain ünd 漢字"),
    ],
)
def test_text_becomes_storable_and_nothing_else_changes(text, stored):
    line = user_text(text).to_json()

    assert "\x00" not in line
    line.encode()
    assert OmniMessage.from_json(line).payload.text == stored


@given(st.text())
@settings(max_examples=300, deadline=None)
def test_whatever_text_is_written_can_be_stored_and_read(text):
    line = dumps({"text": text})

    line.encode()
    assert "\x00" not in line
    assert loads(line)["text"] == loads(dumps(loads(line)))["text"]


@given(st.text())
def test_storable_text_is_left_alone(text):
    assert storable(storable(text)) == storable(text)


@pytest.mark.parametrize(
    ("line", "value"),
    [
        (r'"\u0000"', "\u2400"),
        (r'"\ud800x"', "\ufffdx"),
        (r'"\ud83d\ude00"', "\U0001f600"),
        (r'"\\u0000"', r"\u0000"),
    ],
)
def test_escapes_of_what_cannot_be_stored_are_read_storable(line, value):
    assert loads(line) == value
