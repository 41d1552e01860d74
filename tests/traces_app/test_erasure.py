"""Erasing a body: gone from the database, told in the row, and the chain stays whole."""

import subprocess
from pathlib import Path

import pytest
from django.db import connection

from traces_app import exports, reader, verify, writer
from traces_app.erasure import erase_body, stand_in
from traces_app.models import Blob, JournalEntry, TraceEvent
from traces_app.omnimessage import (
    StopReason,
    image_url,
    thinking,
    tool_call,
    tool_call_output,
    user_text,
)
from traces_app.omnimessage import payloads as p

pytestmark = pytest.mark.django_db(transaction=True)


def erase(trace, seq: int) -> None:
    erase_body(
        TraceEvent.objects.get(trace=trace, seq=seq), by="root", reason="a password"
    )


def test_erased_record_stays_intact_and_complete(trace):
    erase(trace, 8)

    report = verify.verify_trace(trace.session_id)

    assert (report.intact, report.complete, report.erased) == (None, None, 1)


def test_row_says_who_when_and_why(trace):
    erase(trace, 8)

    erasure = reader.event_at(trace.pk, 8).erasure
    assert (erasure.by, erasure.reason) == ("root", "a password")
    assert JournalEntry.objects.get(kind="erase").session_id == trace.session_id


def test_output_keeps_its_place_without_its_text(trace):
    erase(trace, 8)

    payload = reader.event_at(trace.pk, 8).message.payload
    assert payload.tool_call_id == "call_1"
    assert payload.stop_reason is StopReason.COMPLETED
    assert "a.txt" not in payload.output
    assert "erased by root" in payload.output


def test_nothing_of_the_body_is_left_in_the_database_files(make_trace):
    if connection.vendor != "sqlite":
        pytest.skip("looks into SQLite's files")
    secret = "hunter2-correct-horse"
    trace = make_trace([user_text(secret), user_text("x" + f"{secret}/" * 9000)])

    erase(trace, 2)
    erase(trace, 3)

    name = connection.settings_dict["NAME"]
    files = list(Path(name).parent.glob(f"{Path(name).name}*"))
    # By another process: closing a file here would drop SQLite's locks on it.
    held = subprocess.check_output(["cat", *map(str, files)])
    assert secret.encode() not in held


def test_blob_of_another_body_is_kept(make_trace):
    image = "data:image/png;base64," + "iVBORw0KGgo/" * 9000
    trace = make_trace([image_url(image), image_url(image)])

    erase(trace, 2)
    assert reader.event_at(trace.pk, 3).message.payload.image_url == image
    erase(trace, 3)
    assert not Blob.objects.exists()


def test_erasing_again_changes_nothing(trace):
    erase(trace, 8)
    before = reader.event_at(trace.pk, 8)
    erase(trace, 8)

    assert reader.event_at(trace.pk, 8) == before
    assert JournalEntry.objects.filter(kind="erase").count() == 1


@pytest.mark.parametrize(("by", "reason"), [("", "why"), ("root", " ")])
def test_erasure_needs_a_person_and_a_reason(trace, by, reason):
    with pytest.raises(ValueError, match="needs a person and a reason"):
        erase_body(TraceEvent.objects.get(trace=trace, seq=8), by=by, reason=reason)


def test_erasure_that_the_journal_does_not_know_is_tampering(trace, tamper):
    tamper(
        "UPDATE traces_app_eventbody SET erased_at = '2026-01-01 00:00:00+00', "
        "erased_by = 'root', text = '{}' WHERE event_id = "
        "(SELECT id FROM traces_app_traceevent WHERE seq = 8)"
    )

    assert verify.verify_trace(trace.session_id).intact.seq == 8


def test_export_of_an_erased_event_is_still_one_envelope_per_line(trace):
    erase(trace, 3)
    lines = b"".join(exports.jsonl(trace)).splitlines()

    assert len(lines) == 11


def test_writing_goes_on_after_an_erasure(trace):
    erase(trace, 11)

    writer.append(trace.pk, [user_text("more")], checkpoint=True)

    assert verify.verify_trace(trace.session_id).is_intact


@pytest.mark.parametrize(
    "message",
    [
        user_text("secret"),
        thinking("secret", fidelity={"signature": "secret"}),
        image_url("data:image/png;base64,secret"),
        tool_call("exec_command", '{"cmd": "secret"}', "c"),
        tool_call_output(
            "c",
            "secret",
            StopReason.FAILED,
            images=("secret",),
            details={"a": "secret"},
        ),
    ],
)
def test_stand_in_holds_nothing_of_the_content(message):
    shape = stand_in(message, "[erased]")

    assert "secret" not in shape.to_json()
    assert shape.timestamp == message.timestamp
    assert shape.type == message.type
    assert isinstance(shape.payload, (type(message.payload), p.Text))
