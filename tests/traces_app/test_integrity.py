"""Tampering: whatever somebody does to the database is found, at the first bad place."""

from pathlib import Path

import pytest
from django.db import connection

from tests.traces_app.conftest import TURN_EVENTS, turn
from traces_app import chain, reader, verify, writer
from traces_app.append_only import purge_allowed
from traces_app.models import EventBody, Trace, TraceEvent
from traces_app.omnimessage import user_text
from traces_app.verify import ExitCode

pytestmark = pytest.mark.django_db(transaction=True)

EVENT = "traces_app_traceevent"


def rehash(trace: Trace, seq: int, *, to_the_end: bool = False) -> None:
    """Make digest and hash of an event fit its body again, as a forger would."""
    rows = TraceEvent.objects.filter(trace=trace, seq__gte=seq).order_by("seq")
    before = TraceEvent.objects.filter(trace=trace, seq=seq - 1).first()
    head = bytes(before.hash) if before else chain.START
    with purge_allowed():
        for row in rows if to_the_end else rows[:1]:
            text = reader.event_at(trace.pk, row.seq).json
            digest = chain.body_digest(bytes(row.salt), text.encode())
            header = chain.header(
                trace.session_id, row.seq, row.timestamp, row.type, digest
            )
            head = chain.link(head, header)
            TraceEvent.objects.filter(pk=row.pk).update(
                body_sha256=digest, hash=head, size=len(text.encode())
            )


def change_text(trace: Trace, seq: int) -> None:
    event = TraceEvent.objects.get(trace=trace, seq=seq)
    text = reader.event_at(trace.pk, seq).json
    with purge_allowed():
        EventBody.objects.filter(pk=event.pk).update(
            text=text.replace("files", "trees").replace("a.txt", "b.txt")
        )


def intact(trace: Trace):
    return verify.verify_trace(trace.session_id).intact


def test_untouched_record_is_intact_and_complete(trace):
    report = verify.verify_trace(trace.session_id)

    assert (report.intact, report.complete) == (None, None)
    assert (report.events, report.covered_to) == (TURN_EVENTS, TURN_EVENTS)
    assert report.exit_code is ExitCode.GOOD


def test_hash_follows_the_published_rules(trace):
    import hashlib
    import json

    head = bytes(32)
    for row in TraceEvent.objects.filter(trace=trace).order_by("seq"):
        body = reader.event_at(trace.pk, row.seq).json.encode()
        envelope = json.loads(body)
        header = {
            "v": 1,
            "trace": trace.session_id,
            "seq": row.seq,
            "timestamp": envelope["timestamp"],
            "type": envelope["type"],
            "body_sha256": hashlib.sha256(bytes(row.salt) + body).hexdigest(),
        }
        canonical = json.dumps(
            header, sort_keys=True, separators=(",", ":"), ensure_ascii=False
        )
        head = hashlib.sha256(head + canonical.encode()).digest()
        assert bytes(row.hash) == head
        assert len(bytes(row.salt)) == 16


def test_changed_body_is_found(trace):
    change_text(trace, 8)

    assert intact(trace).seq == 8


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("timestamp", "2020-01-01T00:00:00.000Z"),
        ("type", "event_msg"),
        ("kind", "thinking"),
        ("tool", "read_image"),
        ("tool_call_id", "call_2"),
        ("status", "failed"),
        ("segment", 2),
        ("size", 1),
        ("salt", b"0" * 16),
        ("body_sha256", b"0" * 32),
        ("hash", b"0" * 32),
    ],
)
def test_changed_column_is_found(trace, tamper, column, value):
    tamper(f"UPDATE {EVENT} SET {column} = %s WHERE seq = 8", value)

    assert intact(trace).seq == 8


def test_changed_decision_column_is_found(trace, tamper):
    tamper(f"UPDATE {EVENT} SET decision = 'deny' WHERE decision = 'allow'")

    assert intact(trace).seq == 6


def test_event_changed_and_rehashed_breaks_the_next_link(trace):
    change_text(trace, 8)
    rehash(trace, 8)

    assert intact(trace).seq == 9


def test_last_event_changed_and_rehashed_differs_from_its_checkpoint(make_trace):
    trace = make_trace(turn()[:7])
    change_text(trace, 8)
    rehash(trace, 8)

    assert "checkpoint at #8" in intact(trace).sentence


def test_event_changed_and_all_rehashed_differs_from_its_checkpoint(make_trace):
    trace = make_trace(turn()[:4])
    writer.append(trace.pk, turn()[4:], checkpoint=True)
    change_text(trace, 8)
    rehash(trace, 8, to_the_end=True)

    found = intact(trace)

    assert found.seq == 6  # the first event after the last good checkpoint
    assert "between #6 and #11" in found.sentence


@pytest.mark.parametrize("seq", [1, 5, TURN_EVENTS])
def test_deleted_event_is_found(trace, tamper, seq):
    row = TraceEvent.objects.get(trace=trace, seq=seq)
    tamper("DELETE FROM traces_app_eventbody WHERE event_id = %s", row.pk)
    tamper(f"DELETE FROM {EVENT} WHERE id = %s", row.pk)

    report = verify.verify_trace(trace.session_id)

    assert report.intact.seq == seq
    assert report.exit_code is ExitCode.TAMPERED


def test_deleted_tail_is_found(trace, tamper):
    tamper(
        "DELETE FROM traces_app_eventbody WHERE event_id IN "
        f"(SELECT id FROM {EVENT} WHERE seq > 8)"
    )
    tamper(f"DELETE FROM {EVENT} WHERE seq > 8")

    assert intact(trace).seq == 9


def test_record_without_any_event_left_is_found(trace, tamper):
    tamper("DELETE FROM traces_app_eventbody")
    tamper(f"DELETE FROM {EVENT}")

    assert intact(trace).seq == 1


def test_deleted_body_is_found(trace, tamper):
    row = TraceEvent.objects.get(trace=trace, seq=3)
    tamper("DELETE FROM traces_app_eventbody WHERE event_id = %s", row.pk)

    assert intact(trace).seq == 3


def test_inserted_event_is_found(trace, tamper):
    tamper(f"UPDATE {EVENT} SET seq = seq + 100 WHERE seq > 5")
    tamper(f"UPDATE {EVENT} SET seq = seq - 99 WHERE seq > 5")
    extra = writer.create_trace("session-other", project="default")
    writer.append(extra.pk, [user_text("inserted")])
    tamper(
        f"UPDATE {EVENT} SET trace_id = %s, seq = 6 WHERE trace_id = %s",
        trace.pk,
        extra.pk,
    )

    assert intact(trace).seq == 6


def test_swapped_events_are_found(trace, tamper):
    tamper(f"UPDATE {EVENT} SET seq = 100 WHERE seq = 4")
    tamper(f"UPDATE {EVENT} SET seq = 4 WHERE seq = 5")
    tamper(f"UPDATE {EVENT} SET seq = 5 WHERE seq = 100")

    assert intact(trace).seq == 4


def test_event_copied_from_another_session_is_found(trace, make_trace, tamper):
    other = make_trace(turn())
    tamper(
        "DELETE FROM traces_app_eventbody WHERE event_id IN "
        f"(SELECT id FROM {EVENT} WHERE trace_id = %s AND seq = 8)",
        trace.pk,
    )
    tamper(f"DELETE FROM {EVENT} WHERE trace_id = %s AND seq = 8", trace.pk)
    tamper(
        f"UPDATE {EVENT} SET trace_id = %s WHERE trace_id = %s AND seq = 8",
        trace.pk,
        other.pk,
    )

    assert intact(trace).seq == 8


def test_renamed_session_is_found_under_both_names(trace, tamper):
    old = trace.session_id
    tamper("UPDATE traces_app_trace SET session_id = 'session-new'")

    assert verify.verify_trace("session-new").intact.seq == 1
    assert "gone or was renamed" in verify.verify_trace(old).intact.sentence


def test_sequence_that_begins_again_is_found(trace, tamper):
    tamper(
        "DELETE FROM traces_app_eventbody WHERE event_id IN "
        f"(SELECT id FROM {EVENT} WHERE seq <= 3)"
    )
    tamper(f"DELETE FROM {EVENT} WHERE seq <= 3")
    tamper(f"UPDATE {EVENT} SET seq = seq - 3")

    assert intact(trace).seq == 1


def test_unknown_session_is_an_error_of_its_own(db):
    with pytest.raises(LookupError, match="session-nobody"):
        verify.verify_trace("session-nobody")


def test_events_after_the_last_checkpoint_are_told(make_trace):
    trace = make_trace(turn())
    writer.append(trace.pk, [user_text("more")])

    report = verify.verify_trace(trace.session_id)

    assert (report.events, report.covered_to) == (12, 11)


def test_protection_tells_whether_one_owner_could_forge_it_all(
    trace, settings, tmp_path
):
    folder = tmp_path
    if connection.vendor == "sqlite":
        folder = Path(connection.settings_dict["NAME"]).parent
    settings.SIGNING_KEY_FILE = folder / "keys" / "key.pem"
    settings.WITNESS_FILE = folder / "witness.jsonl"
    together = verify.protection()
    settings.WITNESS_FILE = tmp_path / "elsewhere" / "witness.jsonl"
    apart = verify.protection()

    assert f"in one folder, {folder}" in together[0]
    assert apart == ["database, key and witness do not all lie in one folder"]
