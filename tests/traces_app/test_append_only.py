"""The database itself refuses to change the record."""

import sqlite3

import pytest
from django.core.management import call_command
from django.db import DatabaseError, connection, transaction

from penguin_web import preparation
from traces_app import append_only, journal
from traces_app.append_only import (
    create_triggers,
    purge_allowed,
    triggers_in_place,
)
from traces_app.models import JournalEntry, TraceEvent
from traces_app.omnimessage import user_text

pytestmark = pytest.mark.django_db(transaction=True)

LONG = user_text("data:image/png;base64," + "iVBORw0KGgo/" * 9000)
TABLES = [
    "traces_app_traceevent",
    "traces_app_eventbody",
    "traces_app_bodypart",
    "traces_app_blob",
    "traces_app_checkpoint",
    "traces_app_journalentry",
]
COLUMNS = dict(
    zip(TABLES, ["seq", "text", '"offset"', "text", "seq", "seq"], strict=True)
)


@pytest.fixture
def full(make_trace):
    """A record with a row in every table."""
    trace = make_trace([LONG])
    journal.record("read", "ann", session_id=trace.session_id)
    return trace


@pytest.fixture
def raw():
    """A connection of another program, to which the switch means nothing."""
    if connection.vendor == "sqlite":
        other = sqlite3.connect(connection.settings_dict["NAME"], isolation_level=None)
    else:
        import psycopg

        given = connection.settings_dict
        other = psycopg.connect(
            dbname=given["NAME"],
            user=given["USER"],
            host=given["HOST"],
            autocommit=True,
        )
    yield other
    other.close()


def refusals():
    if connection.vendor == "sqlite":
        return sqlite3.DatabaseError
    import psycopg

    return psycopg.DatabaseError


@pytest.mark.parametrize("table", TABLES)
def test_update_is_refused_on_a_raw_connection(full, raw, table):
    column = COLUMNS[table]

    with pytest.raises(refusals()):
        raw.execute(f"UPDATE {table} SET {column} = {column}")


@pytest.mark.parametrize("table", TABLES)
def test_delete_is_refused_on_a_raw_connection(full, raw, table):
    with pytest.raises(refusals()):
        raw.execute(f"DELETE FROM {table}")


@pytest.mark.parametrize("table", TABLES)
def test_what_passes_row_triggers_is_refused_on_a_raw_connection(full, raw, table):
    by_the_back_door = {
        "sqlite": f"INSERT OR REPLACE INTO {table} SELECT * FROM {table}",
        "postgresql": f"TRUNCATE {table} CASCADE",
    }[connection.vendor]

    with pytest.raises(refusals(), match="append-only"):
        raw.execute(by_the_back_door)


def test_session_id_of_a_trace_is_refused_and_its_title_is_not(full, raw):
    raw.execute("UPDATE traces_app_trace SET title = 'x'")

    with pytest.raises(refusals()):
        raw.execute("UPDATE traces_app_trace SET session_id = 'x'")


def test_model_update_and_delete_are_refused_with_a_reason(full):
    with pytest.raises(DatabaseError, match="append-only"):
        TraceEvent.objects.update(seq=5)
    with pytest.raises(DatabaseError, match="append-only"):
        JournalEntry.objects.all().delete()


def test_switch_is_off_again_after_the_block(full):
    with purge_allowed():
        TraceEvent.objects.filter(seq=2).update(kind="text")

    with pytest.raises(DatabaseError, match="append-only"):
        TraceEvent.objects.filter(seq=2).update(kind="text")


def test_switch_is_off_again_after_a_block_that_raised(full):
    with pytest.raises(RuntimeError), purge_allowed():
        raise RuntimeError

    with pytest.raises(DatabaseError, match="append-only"):
        TraceEvent.objects.filter(seq=2).update(kind="text")


def test_switch_opens_no_other_connection(full, raw):
    with purge_allowed():
        if connection.vendor == "sqlite":
            raw.execute("PRAGMA busy_timeout = 10")
        with pytest.raises(refusals()):
            raw.execute("DELETE FROM traces_app_eventbody")


def test_triggers_stand_after_migrate():
    assert triggers_in_place() == []


def test_missing_or_changed_triggers_are_told_and_put_back(full):
    name = "traces_app_traceevent_no_update"
    on = "" if connection.vendor == "sqlite" else " ON traces_app_traceevent"
    with connection.cursor() as cursor:
        cursor.execute(f"DROP TRIGGER {name}{on}")
    assert triggers_in_place() == [name]

    call_command("migrate", verbosity=0)

    assert triggers_in_place() == []


def test_trigger_that_refuses_nothing_any_more_is_told(full):
    if connection.vendor == "sqlite":
        name = "traces_app_blob_no_delete"
        with connection.cursor() as cursor:
            cursor.execute(f"DROP TRIGGER {name}")
            cursor.execute(
                f"CREATE TRIGGER {name} BEFORE DELETE ON traces_app_blob "
                "BEGIN SELECT 1; END"
            )
        assert triggers_in_place() == [name]
    else:
        with connection.cursor() as cursor:
            cursor.execute("ALTER TABLE traces_app_blob DISABLE TRIGGER ALL")
        assert len(triggers_in_place()) == 3
        with connection.cursor() as cursor:
            cursor.execute("ALTER TABLE traces_app_blob ENABLE TRIGGER ALL")
    create_triggers()
    assert triggers_in_place() == []


def test_every_append_only_table_is_one_of_the_record():
    from django.apps import apps

    tables = {
        model._meta.db_table for model in apps.get_app_config("traces_app").get_models()
    }

    assert set(append_only.KEYS) == tables


def test_flush_between_tests_gets_past_the_triggers(full):
    call_command("flush", verbosity=0, interactive=False)

    assert not TraceEvent.objects.exists()
    assert triggers_in_place() == []


def test_savepoint_inside_a_purge_keeps_the_switch(full):
    with purge_allowed():
        with transaction.atomic():
            TraceEvent.objects.filter(seq=2).update(kind="text")
        TraceEvent.objects.filter(seq=2).update(kind="text")


def test_server_puts_missing_triggers_back_and_says_so(full, caplog):
    on = "" if connection.vendor == "sqlite" else " ON traces_app_blob"
    with connection.cursor() as cursor:
        cursor.execute(f"DROP TRIGGER traces_app_blob_no_update{on}")

    preparation.guard_record()

    assert triggers_in_place() == []
    assert "traces_app_blob_no_update" in caplog.text
