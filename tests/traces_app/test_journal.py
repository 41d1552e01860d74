"""The instance journal: coalesced, chained, signed, and never in a session's Trace."""

import pytest

from traces_app import journal, reader
from traces_app.models import Checkpoint, JournalEntry
from traces_app.verify import Verifier

pytestmark = pytest.mark.django_db(transaction=True)


def found() -> str:
    finding = Verifier().instance.about("journal")
    return finding.sentence if finding else ""


def test_entry_says_who_did_what(trace):
    entry = journal.record(
        "read", "ann", session_id=trace.session_id, project="default"
    )

    assert (entry.kind, entry.person, entry.project) == ("read", "ann", "default")
    assert entry.session_id == trace.session_id
    assert reader.head_seq(trace.pk) == 11


def test_same_again_within_the_hour_is_one_entry(trace):
    journal.record("read", "ann", session_id=trace.session_id)

    assert journal.record("read", "ann", session_id=trace.session_id) is None
    assert JournalEntry.objects.count() == 1


@pytest.mark.parametrize(
    ("kind", "person", "session_id"),
    [("export", "ann", "s"), ("read", "bob", "s"), ("read", "ann", "t")],
)
def test_another_kind_person_or_session_is_another_entry(kind, person, session_id):
    journal.record("read", "ann", session_id="s")

    assert journal.record(kind, person, session_id=session_id) is not None


def test_what_counts_every_time_is_never_coalesced():
    journal.record("erase", "ann", every_time=True)
    journal.record("erase", "ann", every_time=True)

    assert JournalEntry.objects.count() == 2


def test_journal_is_signed_entry_by_entry():
    journal.record("sign_in", "ann")
    journal.record("sign_in", "bob")

    assert list(
        Checkpoint.objects.order_by("number").values_list("seq", "trace_id")
    ) == [
        (1, None),
        (2, None),
    ]
    assert found() == ""


@pytest.mark.parametrize(
    ("column", "value"), [("person", "eve"), ("text", "{}"), ("hash", b"0" * 32)]
)
def test_changed_entry_is_found(tamper, column, value):
    journal.record("sign_in", "ann")
    journal.record("sign_in", "bob")
    tamper(f"UPDATE traces_app_journalentry SET {column} = %s WHERE seq = 1", value)

    assert "#1 was changed" in found()


def test_removed_entries_are_found(tamper):
    for person in ("ann", "bob", "cas"):
        journal.record("sign_in", person)
    tamper("DELETE FROM traces_app_journalentry WHERE seq = 2")
    assert "#2 is missing" in found()

    tamper("DELETE FROM traces_app_journalentry WHERE seq > 1")
    assert "from #2 on are missing" in found()
