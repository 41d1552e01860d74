"""What ties records together: checkpoints, their witness outside, and the key."""

import pytest
from django.conf import settings

from tests.traces_app.conftest import turn
from traces_app import verify, writer
from traces_app.models import Checkpoint, Trace
from traces_app.omnimessage import user_text
from traces_app.signing import signing_key
from traces_app.verify import Verifier

pytestmark = pytest.mark.django_db(transaction=True)

EVENT = "traces_app_traceevent"


def intact(trace: Trace):
    return verify.verify_trace(trace.session_id).intact


def drop(trace: Trace, tamper) -> None:
    tamper("DELETE FROM traces_app_checkpoint WHERE trace_id = %s", trace.pk)
    tamper(
        "DELETE FROM traces_app_eventbody WHERE event_id IN "
        f"(SELECT id FROM {EVENT} WHERE trace_id = %s)",
        trace.pk,
    )
    tamper(f"DELETE FROM {EVENT} WHERE trace_id = %s", trace.pk)
    tamper("DELETE FROM traces_app_trace WHERE id = %s", trace.pk)


def test_dropped_session_is_missed_by_the_witness(make_trace, tamper):
    kept, dropped = make_trace(turn()), make_trace(turn())
    drop(dropped, tamper)

    reports = {each.session_id: each for each in Verifier().verify_all()}

    assert reports[kept.session_id].is_intact
    assert "the witness saw" in reports[dropped.session_id].intact.sentence


def test_dropped_session_leaves_a_gap_in_the_checkpoints(make_trace, tamper):
    dropped, kept = make_trace(turn()), make_trace(turn())
    drop(dropped, tamper)
    settings.WITNESS_FILE.unlink()

    verifier = Verifier()

    assert "checkpoint 1 is missing" in verifier.instance.about("").sentence
    assert "is missing" in verifier.verify(kept.session_id).intact.sentence


@pytest.mark.parametrize("column", ["text", "hash", "signature", "seq"])
def test_changed_checkpoint_is_found(make_trace, tamper, column):
    trace, later = make_trace(turn()), make_trace(turn())
    value = {
        "text": Checkpoint.objects.get(number=1).text.replace(
            '"count":11', '"count":9'
        ),
        "hash": b"0" * 32,
        "signature": b"0" * 64,
        "seq": 10,
    }[column]
    tamper(f"UPDATE traces_app_checkpoint SET {column} = %s WHERE number = 1", value)

    assert intact(trace) is not None
    assert later.session_id


def test_database_rolled_back_is_found_with_the_witness(make_trace, tamper):
    trace = make_trace(turn())
    writer.append(trace.pk, turn("call_2"), checkpoint=True)
    tamper("DELETE FROM traces_app_checkpoint WHERE number > 1")
    tamper(
        "DELETE FROM traces_app_eventbody WHERE event_id IN "
        f"(SELECT id FROM {EVENT} WHERE seq > 11)"
    )
    tamper(f"DELETE FROM {EVENT} WHERE seq > 11")

    assert intact(trace).seq == 12


def test_work_that_goes_on_after_a_rollback_does_not_hide_it(make_trace, tamper):
    trace = make_trace(turn())
    writer.append(trace.pk, turn("call_2"), checkpoint=True)
    tamper("DELETE FROM traces_app_checkpoint WHERE number > 1")
    tamper(
        "DELETE FROM traces_app_eventbody WHERE event_id IN "
        f"(SELECT id FROM {EVENT} WHERE seq > 11)"
    )
    tamper(f"DELETE FROM {EVENT} WHERE seq > 11")
    writer.append(trace.pk, [user_text("on"), *turn("call_3")[1:]], checkpoint=True)

    assert "rolled back" in intact(trace).sentence or intact(trace).seq == 12


def test_witness_line_lost_in_a_crash_comes_with_the_next(make_trace):
    make_trace(turn())
    make_trace(turn())
    path = settings.WITNESS_FILE
    first = path.read_text().splitlines(keepends=True)[0]
    path.write_text(first + '{"torn')

    make_trace(turn())

    instance = Verifier().instance
    assert (instance.findings, instance.witness_lines) == ([], 3)
    assert instance.notes == ["line 2 of the witness is unreadable"]


def test_changed_witness_line_is_found(make_trace):
    trace = make_trace(turn())
    path = settings.WITNESS_FILE
    path.write_text(path.read_text().replace('"count":11', '"count":12'))

    assert "witness was changed" in intact(trace).sentence


def test_missing_witness_is_a_note_and_no_finding(trace):
    settings.WITNESS_FILE.unlink()

    instance = Verifier().instance

    assert instance.findings == []
    assert "no witness" in instance.notes[0]


def test_removed_line_of_the_witness_is_a_note(make_trace):
    make_trace(turn()), make_trace(turn())
    path = settings.WITNESS_FILE
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:-1]))

    instance = Verifier().instance

    assert instance.findings == []
    assert "the witness lacks 1 checkpoints" in instance.notes[0]


def test_key_is_readable_by_its_owner_alone(trace):
    assert settings.SIGNING_KEY_FILE.stat().st_mode & 0o777 == 0o600


def test_checkpoints_of_a_key_nobody_knows_are_found(trace, settings, tmp_path):
    settings.SIGNING_KEY_FILE = tmp_path / "keys" / "signing_key.pem"

    assert "another key" in verify.verify_trace(trace.session_id).intact.sentence


def test_checkpoints_of_a_retired_key_stay_good(trace, settings, tmp_path):
    retired = signing_key().public_bytes.hex()
    settings.SIGNING_KEY_FILE = tmp_path / "keys" / "signing_key.pem"
    signing_key()
    (tmp_path / "keys" / "before.pub").write_text(retired + "\n")

    assert verify.verify_trace(trace.session_id).is_intact
