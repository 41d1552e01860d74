"""Imports: all or nothing, exact bytes back, never into a record that is there."""

import json

import pytest

from tests.traces_app.conftest import session_meta, turn
from traces_app import exports, reader, verify, writer
from traces_app.imports import ImportRefused, TraceExists, import_trace
from traces_app.models import JournalEntry, Trace
from traces_app.omnimessage import user_text

pytestmark = pytest.mark.django_db(transaction=True)

META = session_meta("session-foreign").to_json().encode()
TURN = [message.to_json().encode() for message in turn()]
# As other programs write: other order, spaces, escapes, fields of their own.
FOREIGN = (
    rb'{ "type":"model_msg", "payload": {"role":"user","type":"text","text":"h\u00e9",'
    rb'"theirs":{"b":1,"a":[1.50,2e3]}},"timestamp":"2025-01-01T00:00:00+00:00","x":1}'
)


def do_import(content: bytes, **options) -> Trace:
    chunks = [content[i : i + 7] for i in range(0, len(content), 7)]
    return import_trace(chunks, project="default", by="ann", **options)


def export(trace: Trace) -> bytes:
    return b"".join(exports.jsonl(trace))


def refusal(content: bytes, **options) -> list[tuple[int, str]]:
    with pytest.raises(ImportRefused) as caught:
        do_import(content, **options)
    assert not Trace.objects.exists()
    return [(problem.line, problem.reason) for problem in caught.value.problems]


@pytest.mark.parametrize(
    "content",
    [
        b"\n".join([META, *TURN]) + b"\n",
        b"\n".join([META, *TURN]),
        b"\r\n".join([META, FOREIGN]) + b"\r\n",
        META + b"\n" + FOREIGN + b"\n" + rb'{"timestamp":"2025-01-01T00:00:00Z",'
        rb'"type":"model_msg","payload":{"type":"text","role":"user",'
        rb'"text":"nul \u0000 and \ud800"}}' + b"\n",
    ],
)
def test_export_of_an_import_gives_the_same_bytes(content):
    assert export(do_import(content)) == content


def test_import_is_intact_complete_and_marked_as_such():
    trace = do_import(b"\n".join([META, *TURN]), file_name="theirs.jsonl")

    report = verify.verify_trace("session-foreign")
    assert (report.intact, report.complete, report.covered_to) == (None, None, 11)
    assert trace.is_imported
    assert (trace.imported_by, trace.imported_from) == ("ann", "theirs.jsonl")
    assert trace.title == "List the files."
    assert JournalEntry.objects.get(kind="import").session_id == "session-foreign"


def test_recorded_session_makes_the_round_trip(make_trace, tamper):
    trace = make_trace(turn())
    content = export(trace)
    tamper("UPDATE traces_app_trace SET session_id = 'session-moved'")

    assert export(do_import(content)) == content


def test_session_that_is_there_is_not_touched(trace):
    content = export(trace)

    with pytest.raises(TraceExists) as caught:
        do_import(content)

    assert caught.value.trace == trace
    assert reader.head_seq(trace.pk) == 11


def test_nul_of_a_foreign_file_stays_in_the_bytes_and_out_of_the_message():
    line = rb'{"timestamp":"2025-01-01T00:00:00Z","type":"model_msg","payload":'
    line += rb'{"type":"text","role":"user","text":"a\u0000b\udfff"}}'
    trace = do_import(META + b"\n" + line)

    assert reader.event_at(trace.pk, 2).message.payload.text == "a\u2400b\ufffd"


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (b'{"timestamp": "2025-01-', "not valid JSON"),
        (b"", "empty line"),
        (b"\xff\xfe", "not UTF-8 at byte 1"),
        (b"[1]", "expected an object"),
        (TURN[0].replace(b'"model_msg"', b'"other"'), "type: unknown 'other'"),
        (TURN[0].replace(b'"role":"user",', b""), "payload.role: missing"),
        (TURN[0].replace(b'"role"', b'"role":"user","role"'), "duplicate key 'role'"),
        (session_meta("session-b").to_json().encode(), "begins another session"),
        (TURN[0].replace(b'"text":"List the files."', b'"text":1'), "expected str"),
        (b"1" * 5000, "digits"),
    ],
)
def test_bad_line_refuses_the_file_with_line_and_reason(bad, reason):
    problems = refusal(b"\n".join([META, TURN[0], bad, TURN[1]]) + b"\n")

    assert [line for line, _ in problems] == [3]
    assert reason in problems[0][1]


def test_every_bad_line_is_told():
    assert [line for line, _ in refusal(b"\n".join([META, b"a", TURN[0], b"b"]))] == [
        2,
        4,
    ]


def test_streaming_pieces_are_no_part_of_a_trace():
    piece = {
        "timestamp": "2025-01-01T00:00:00Z",
        "type": "model_msg",
        "payload": {
            "type": "partial_text",
            "role": "assistant",
            "event_type": "delta",
            "text": "x",
        },
    }

    problems = refusal(META + b"\n" + json.dumps(piece).encode())

    assert "streaming" in problems[0][1]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "empty"),
        (b"\n", "empty line"),
        (TURN[0], "no session_meta"),
        (META.replace(b"session-foreign", b"a/b"), "address"),
        (META.replace(b"session-foreign", b".."), "address"),
    ],
)
def test_first_line_must_name_the_session(content, reason):
    for damaged in ("refuse", "mark"):
        problems = refusal(content, damaged=damaged)
        assert problems[0][0] == 1
        assert reason in problems[0][1]


def test_torn_last_line_becomes_one_damaged_event_when_asked():
    content = b"\n".join([META, *TURN, TURN[0][:40]])
    assert [line for line, _ in refusal(content)] == [12]

    trace = do_import(content, damaged="mark")

    last = reader.event_at(trace.pk, 12)
    assert last.kind == "damaged"
    assert last.message.payload.line == 12
    assert reader.head_seq(trace.pk) == 12


def test_damaged_line_in_the_middle_takes_its_place_and_the_record_is_incomplete():
    content = b"\n".join([META, TURN[0], b"{", *TURN[1:]])

    trace = do_import(content, damaged="mark")

    kinds = [event.kind for event in reader.events(trace.pk)]
    assert kinds[:4] == ["session_meta", "text", "damaged", "request_begin"]
    report = verify.verify_trace("session-foreign")
    assert report.is_intact
    assert report.complete.seq == 3


def test_import_that_ends_in_the_middle_of_a_task_is_incomplete():
    do_import(b"\n".join([META, *TURN[:5]]))

    assert "does not go on" in verify.verify_trace("session-foreign").complete.sentence


def test_messages_of_children_keep_their_origin():
    line = user_text("x").with_origin("session-child").to_json().encode()

    trace = do_import(META + b"\n" + line)

    assert reader.event_at(trace.pk, 2).message.origin == ("session-child",)


def test_long_values_of_filter_columns_are_cut_in_the_column_alone():
    from traces_app.omnimessage import tool_call

    line = tool_call("t" * 3000, "{}", "c" * 3000).to_json().encode()

    trace = do_import(META + b"\n" + line)

    assert verify.verify_trace(trace.session_id).is_intact
    assert export(trace).splitlines()[1] == line
    assert reader.call_events(trace.pk, "c" * 3000)[0].seq == 2


def test_writer_and_import_agree_on_columns(make_trace):
    imported = do_import(b"\n".join([META, *TURN]))
    written = make_trace()
    writer.append(written.pk, turn())

    def facts(trace):
        return [
            (e.kind, e.type, e.tool, e.tool_call_id, e.decision, e.status, e.segment)
            for e in reader.iter_events(trace.pk)
        ]

    assert facts(imported) == facts(written)
