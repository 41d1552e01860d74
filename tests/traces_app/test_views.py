"""The viewer: every event by number, found and filtered, with two verdicts."""

import re

import pytest
from django.contrib.auth.models import User

from traces_app.models import JournalEntry
from traces_app.omnimessage import (
    StopReason,
    assistant_text,
    event,
    tool_call,
    tool_call_output,
    user_text,
)
from traces_app.omnimessage import payloads as p

pytestmark = pytest.mark.django_db
LIST = "/p/default/traces/"


@pytest.fixture
def admin(client, project):
    user = User.objects.create_superuser("ada", password="x")
    client.force_login(user)
    return user


def address(trace, query="") -> str:
    return f"/p/default/s/{trace.session_id}/trace/{query}"


def page_of(client, path: str) -> str:
    response = client.get(path)
    assert response.status_code == 200
    return response.content.decode()


def rows(page: str) -> list[int]:
    return [int(seq) for seq in re.findall(r'data-seq="(\d+)"', page)]


def test_every_event_has_a_row_with_its_permalink(client, admin, trace):
    page = page_of(client, address(trace))

    assert rows(page) == list(range(1, 12))
    assert 'id="e7"' in page
    assert 'event=7#e7"' in page


def test_both_verdicts_are_words(client, admin, trace):
    page = page_of(client, address(trace, "?verify=yes"))

    assert "<strong>intact</strong>" in page
    assert "<strong>complete</strong>" in page


def test_verifying_keeps_what_is_shown_and_says_that_it_was_done(client, admin, trace):
    page = page_of(client, address(trace, "?event=7&decision=allow"))
    verified = page_of(client, address(trace, "?event=7&decision=allow&verify=yes"))

    assert '<input type="hidden" name="event" value="7">' in page
    assert "checked just now" not in page
    assert "checked just now" in verified


def test_changed_record_is_called_tampered_and_names_the_event(
    client, admin, trace, tamper
):
    tamper(
        "UPDATE traces_app_eventbody SET text = replace(text, 'ls', 'rm') "
        "WHERE event_id IN (SELECT id FROM traces_app_traceevent WHERE seq = 4)"
    )

    page = page_of(client, address(trace, "?verify=yes"))

    assert "<strong>tampered</strong>" in page
    assert 'href="?event=4#e4"' in page
    assert "<strong>intact</strong>" not in page


def test_call_without_an_end_of_an_imported_record_is_incomplete(
    client, admin, make_trace, tamper
):
    trace = make_trace([user_text("go"), tool_call("exec_command", "{}", "c1")])
    tamper("UPDATE traces_app_trace SET imported_at = created_at")

    page = page_of(client, address(trace, "?verify=yes"))

    assert "<strong>incomplete</strong>" in page


def test_rows_are_found_by_text_type_and_decision(client, admin, trace):
    assert rows(page_of(client, address(trace, "?q=one+file"))) == [10]
    assert rows(page_of(client, address(trace, "?type=approval"))) == [6]
    assert rows(page_of(client, address(trace, "?type=tool_call"))) == [4]
    assert rows(page_of(client, address(trace, "?decision=deny"))) == []
    assert rows(page_of(client, address(trace, "?decision=allow"))) == [6]
    assert rows(page_of(client, address(trace, "?type=message&q=List"))) == [2]


def test_selected_event_is_shown_whole_with_its_place_in_the_chain(
    client, admin, trace
):
    page = page_of(client, address(trace, "?event=4"))

    detail = page[page.index('<aside class="detail"') :]
    assert "#4" in detail
    assert "&quot;tool_call_id&quot;: &quot;call_1&quot;" in detail
    assert len(re.findall(r"[0-9a-f]{64}", detail)) == 2


def test_long_trace_goes_on_page_by_page_and_a_link_finds_its_event(
    client, admin, make_trace
):
    trace = make_trace([user_text(f"message {n}") for n in range(450)])

    first = page_of(client, address(trace))
    second = page_of(client, address(trace, "?after=200"))
    linked = page_of(client, address(trace, "?event=420"))

    assert rows(first) == list(range(1, 201))
    assert "?after=200" in first
    assert rows(second) == list(range(201, 401))
    assert 420 in rows(linked)


def test_hostile_text_of_a_record_is_text(client, admin, make_trace):
    hostile = "<script>alert(1)</script>\u202e"
    trace = make_trace(
        [
            user_text(hostile),
            assistant_text(hostile),
            tool_call(hostile, hostile, hostile),
            tool_call_output(hostile, hostile, StopReason.FAILED),
            event(p.Abort(reason=hostile)),
        ]
    )

    page = page_of(client, address(trace, "?event=2"))

    assert "<script>alert" not in page
    assert r"\u{202e}" in page


def test_viewer_reads_but_does_not_verify(client, viewer, trace):
    client.force_login(viewer)

    page = page_of(client, address(trace))
    refused = client.get(address(trace, "?verify=yes"))

    assert "Verify" not in page
    assert "Export" not in page
    assert refused.status_code == 403


def test_auditor_verifies_and_exports(client, auditor, trace):
    client.force_login(auditor)

    page = page_of(client, address(trace))

    assert "Verify" in page
    assert f"/api/v1/sessions/{trace.session_id}/trace.jsonl" in page


@pytest.mark.parametrize("path", ["traces/", "s/{}/trace/"])
def test_stranger_sees_no_record(client, stranger, trace, path):
    client.force_login(stranger)

    response = client.get("/p/default/" + path.format(trace.session_id))

    assert response.status_code == 404


def test_record_is_not_found_under_another_project(client, admin, trace):
    assert client.get(f"/p/other/s/{trace.session_id}/trace/").status_code == 404


@pytest.mark.parametrize("path", ["traces/", "s/{}/trace/"])
def test_viewer_of_records_is_behind_the_login_and_takes_only_get(
    client, admin, trace, path
):
    path = "/p/default/" + path.format(trace.session_id)

    assert client.post(path).status_code == 405
    client.logout()
    assert client.get(path).status_code == 302


def test_reading_a_record_is_noted_in_the_journal(client, admin, trace):
    page_of(client, address(trace, "?verify=yes"))

    noted = JournalEntry.objects.values_list("kind", "person", "session_id")
    assert ("read", "ada", trace.session_id) in noted
    assert ("verify", "ada", trace.session_id) in noted


def test_list_shows_the_records_of_the_project_alone(client, admin, make_trace):
    make_trace(session_id="session-mine")
    make_trace(session_id="session-too")

    page = page_of(client, LIST)

    assert page.index("session-too") < page.index("session-mine")
    assert "/p/default/s/session-mine/trace/" in page


def test_numbers_that_are_none_are_ignored(client, admin, trace):
    for query in ("?after=x", "?after=-5", "?event=9999999999999999999", "?event=0"):
        assert rows(page_of(client, address(trace, query)))
