"""Reading: pages by seq, filters, find, and never a query without an index."""

import json

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.traces_app.conftest import decision, turn
from traces_app import find, reader, writer
from traces_app.omnimessage import StopReason, tool_call, tool_call_output, user_text

pytestmark = pytest.mark.django_db


def seqs(events) -> list[int]:
    return [event.seq for event in events]


def test_pages_join_without_gap_or_repeat(make_trace):
    trace = make_trace([user_text(str(number)) for number in range(25)])
    found, after = [], 0
    while page := reader.events(trace.pk, after=after, limit=10):
        found += seqs(page)
        after = page[-1].seq

    assert found == list(range(1, 27))


def test_iteration_walks_every_page(make_trace):
    trace = make_trace([user_text(str(number)) for number in range(25)])

    assert seqs(reader.iter_events(trace.pk, after=3, batch=10)) == list(range(4, 27))


def test_records_of_sessions_are_apart(make_trace):
    first, second = make_trace([user_text("first")]), make_trace([user_text("second")])

    assert seqs(reader.events(first.pk, q="second")) == []
    assert seqs(reader.events(second.pk, q="second")) == [2]


def test_kinds_tool_and_decision_filter_together(make_trace):
    trace = make_trace(
        [*turn(), tool_call("read_image", "{}", "c2"), decision("c2", "deny")]
    )

    def found(**filters):
        return seqs(reader.events(trace.pk, **filters))

    assert found(kinds=["tool_call"]) == [4, 12]
    assert found(kinds=["tool_call", "tool_call_output"]) == [4, 8, 12]
    assert found(tool="exec_command") == [4, 6, 7, 8]
    assert found(tool="read_image", kinds=["approval_decision"]) == [13]
    assert found(decision="deny") == [13]
    assert found(decision="allow", tool="read_image") == []
    assert found(tool="exec_command", after=6, limit=1) == [7]


def test_tool_is_known_of_outputs_recorded_later(trace):
    writer.append(trace.pk, [tool_call("read_image", "{}", "c2")])

    stored = writer.append(trace.pk, [decision("c2")])

    assert stored[0].tool == "read_image"
    assert seqs(reader.events(trace.pk, tool="read_image")) == [12, 13]


def test_call_events_are_the_whole_story_of_a_call(trace):
    kinds = [event.kind for event in reader.call_events(trace.pk, "call_1")]

    assert kinds == [
        "tool_call",
        "approval_decision",
        "tool_started",
        "tool_call_output",
    ]


def test_permalink_is_found_whatever_the_filter(trace):
    assert reader.event_at(trace.pk, 8).kind == "tool_call_output"
    assert reader.event_at(trace.pk, 99) is None
    assert reader.head_seq(trace.pk) == 11
    assert reader.trace_for(trace.session_id) == trace
    assert reader.trace_for("session-nobody") is None


@pytest.mark.parametrize(
    ("text", "q"),
    [
        ("docker push registry", "Docker PUSH"),
        ('say "hello" twice', '"hello"'),
        ("two\nlines", "two\nlines"),
        (r"C:\temp", r"C:\temp"),
        ("über ÄRGER", "ärger"),
        ("漢字かな", "字か"),
        ("100%", "0%"),
        ("under_score", "r_s"),
        ("<b>&amp;", "<b>&"),
        ("😀 face", "😀"),
    ],
)
def test_find_finds_what_a_reader_sees(make_trace, text, q):
    trace = make_trace([user_text("nothing"), user_text(text)])

    assert seqs(reader.events(trace.pk, q=q)) == [3]


def test_find_looks_into_arguments_as_they_are_shown(make_trace):
    arguments = json.dumps({"cmd": 'echo "ünd"\nls'})
    trace = make_trace([tool_call("exec_command", arguments, "c")])

    assert seqs(reader.events(trace.pk, q='echo "ünd"\nls')) == [2]


def test_find_does_not_find_names_of_fields(make_trace):
    trace = make_trace([tool_call_output("c", "x", StopReason.COMPLETED)])

    assert seqs(reader.events(trace.pk, q="stop_reason")) == []
    assert seqs(reader.events(trace.pk, q="tool_call_output")) == [2]


def test_find_looks_into_long_bodies(make_trace):
    trace = make_trace([user_text("hay\n" * 20_000 + "needle" + "hay\n" * 20_000)])

    assert seqs(reader.events(trace.pk, q="NEEDLE")) == [2]


def test_find_goes_on_past_rows_that_only_look_like_hits(make_trace, monkeypatch):
    monkeypatch.setattr(reader, "_FIND_BATCH", 3)
    trace = make_trace([*(user_text("x") for _ in range(10)), user_text("my role")])

    assert seqs(reader.events(trace.pk, q="role")) == [12]


def test_find_works_with_filters_and_pages(make_trace):
    trace = make_trace([user_text(f"needle {number}") for number in range(9)])

    assert seqs(reader.events(trace.pk, q="needle", limit=3)) == [2, 3, 4]
    assert seqs(reader.events(trace.pk, q="needle", after=4, limit=3)) == [5, 6, 7]
    assert seqs(reader.events(trace.pk, q="needle", kinds=["thinking"])) == []


def test_spellings_are_few_for_plain_words():
    assert find.spellings("docker") == ["docker"]


@pytest.mark.parametrize(
    "filters",
    [
        {},
        {"kinds": ["tool_call"]},
        {"kinds": ["tool_call", "text"]},
        {"tool": "exec_command"},
        {"decision": "deny"},
    ],
)
def test_every_page_is_read_by_an_index_without_offset_or_count(trace, filters):
    with CaptureQueriesContext(connection) as captured:
        reader.events(trace.pk, after=5, limit=3, **filters)

    for query in captured:
        sql = query["sql"]
        assert "OFFSET" not in sql
        assert "COUNT" not in sql
        if connection.vendor == "sqlite":
            with connection.cursor() as cursor:
                cursor.execute(f"EXPLAIN QUERY PLAN {sql}")
                plan = " ".join(str(row[3]) for row in cursor.fetchall())
            assert "SEARCH traces_app_traceevent USING" in plan
            assert "SCAN" not in plan
            assert "TEMP B-TREE" not in plan


def test_page_of_two_hundred_rows_asks_twice_at_most(make_trace):
    image = "data:image/png;base64," + "iVBORw0KGgo/" * 9000
    trace = make_trace([user_text(f"{number} {image}") for number in range(20)])

    with CaptureQueriesContext(connection) as captured:
        reader.events(trace.pk)

    assert len(captured) == 2
