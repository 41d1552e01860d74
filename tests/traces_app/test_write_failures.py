"""Appending when the database refuses, or others append as well."""

import asyncio
import sqlite3
import threading

import pytest
from channels.db import database_sync_to_async as in_thread_of
from django.db import IntegrityError, connection

from traces_app import reader, verify, writer
from traces_app.insertion import Head, HeadConflict
from traces_app.omnimessage import thinking, user_text
from traces_app.writer import TraceWriteError, TraceWriter

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
async def trace_writer():
    writing = TraceWriter()
    yield writing
    await writing.aclose()


async def in_thread(function, *arguments):
    return await in_thread_of(function)(*arguments)


async def test_two_writers_on_one_trace_make_one_chain(trace):
    writers = [TraceWriter(), TraceWriter()]

    async def write(writing: TraceWriter) -> None:
        for _ in range(100):
            await writing.append(trace.pk, user_text("x"))

    await asyncio.gather(*(write(writing) for writing in writers))
    for writing in writers:
        await writing.aclose()

    report = await in_thread(verify.verify_trace, trace.session_id)
    assert (report.events, report.intact, report.complete) == (211, None, None)


def test_threads_that_append_at_once_make_one_chain(trace):
    def write():
        for _ in range(40):
            writer.append(trace.pk, [user_text("x")])
        connection.close()

    threads = [threading.Thread(target=write) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    report = verify.verify_trace(trace.session_id)
    assert (report.events, report.intact, report.complete) == (211, None, None)


async def test_full_database_is_told_in_a_sentence_and_heals(trace, trace_writer):
    if connection.vendor != "sqlite":
        pytest.skip("the size limit is SQLite's")
    await trace_writer.append(trace.pk, user_text("first"))

    def limit(pages: int):
        def set_limit():
            with connection.cursor() as cursor:
                cursor.execute(f"PRAGMA max_page_count = {pages}")

        return set_limit

    await trace_writer.append(trace.pk, user_text("x"), also=limit(1))
    with pytest.raises(TraceWriteError, match="full"):
        for _ in range(10):
            await trace_writer.append(trace.pk, user_text("not encoded! " * 50_000))
    head = await in_thread(reader.head_seq, trace.pk)
    await trace_writer.append(trace.pk, user_text("y"), also=limit(2**30))
    stored = await trace_writer.append(trace.pk, user_text("z " * 50_000))

    assert stored[0].seq == head + 2
    report = await in_thread(verify.verify_trace, trace.session_id)
    assert report.is_intact


async def test_database_that_may_only_be_read_is_told_in_a_sentence(
    trace, trace_writer
):
    if connection.vendor != "sqlite":
        pytest.skip("query_only is SQLite's")

    def forbid():
        with connection.cursor() as cursor:
            cursor.execute("PRAGMA query_only = ON")

    with pytest.raises(TraceWriteError, match="only be read"):
        await trace_writer.append(trace.pk, user_text("x"), also=forbid)

    assert await in_thread(reader.head_seq, trace.pk) == 11


async def test_locked_database_is_told_in_a_sentence(trace, settings):
    if connection.vendor != "sqlite":
        pytest.skip("one writer at a time is SQLite's")
    writing = TraceWriter()

    def be_impatient():
        with connection.cursor() as cursor:
            cursor.execute("PRAGMA busy_timeout = 50")

    await writing.append(trace.pk, user_text("x"), also=be_impatient)
    other = sqlite3.connect(connection.settings_dict["NAME"], isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    try:
        with pytest.raises(TraceWriteError, match="locked"):
            await writing.append(trace.pk, user_text("y"))
    finally:
        other.execute("ROLLBACK")
        other.close()

    assert (await writing.append(trace.pk, user_text("z")))[0].seq == 13
    await writing.aclose()


def test_seq_that_another_writer_took_past_the_lock_is_a_conflict(trace, monkeypatch):
    monkeypatch.setattr(
        "traces_app.insertion.Batch._read_head",
        lambda self, trace_id: Head(trace_id, trace.session_id, seq=5),
    )

    with pytest.raises(HeadConflict):
        writer.append(trace.pk, [user_text("x")])

    assert reader.head_seq(trace.pk) == 11


async def test_writer_gives_up_on_endless_conflicts_in_a_sentence(
    trace, trace_writer, monkeypatch
):
    monkeypatch.setattr(
        "traces_app.insertion.Batch._read_head",
        lambda self, trace_id: Head(trace_id, trace.session_id, seq=5),
    )

    with pytest.raises(TraceWriteError, match="keeps taking its place"):
        await trace_writer.append(trace.pk, user_text("x"))


async def test_row_the_database_refuses_fails_alone(make_trace, trace_writer):
    trace, other = await in_thread(make_trace), await in_thread(make_trace)

    def refuse():
        raise IntegrityError("this one is refused")

    outcomes = await asyncio.gather(
        trace_writer.append(trace.pk, user_text("x"), also=refuse),
        trace_writer.append(other.pk, user_text("kept")),
        return_exceptions=True,
    )

    assert isinstance(outcomes[0], IntegrityError)
    assert outcomes[1][0].seq == 2


@pytest.fixture
def refuse_thoughts(db):
    """A database that takes any event but a thought."""
    change = {
        "sqlite": (
            "CREATE TRIGGER no_thought BEFORE INSERT ON traces_app_traceevent "
            "WHEN NEW.kind = 'thinking' BEGIN SELECT RAISE(ABORT, 'no thoughts'); END",
            "DROP TRIGGER no_thought",
        ),
        "postgresql": (
            "ALTER TABLE traces_app_traceevent ADD CONSTRAINT no_thought "
            "CHECK (kind <> 'thinking')",
            "ALTER TABLE traces_app_traceevent DROP CONSTRAINT no_thought",
        ),
    }[connection.vendor]
    with connection.cursor() as cursor:
        cursor.execute(change[0])
    yield
    with connection.cursor() as cursor:
        cursor.execute(change[1])


@pytest.mark.parametrize("also", [None, lambda: None])
async def test_insert_the_database_refuses_is_told_and_fails_alone(
    trace, trace_writer, refuse_thoughts, also
):
    outcomes = await asyncio.gather(
        trace_writer.append(trace.pk, user_text("one")),
        trace_writer.append(trace.pk, thinking("lost"), also=also),
        trace_writer.append(trace.pk, user_text("two")),
        return_exceptions=True,
    )

    assert isinstance(outcomes[1], TraceWriteError)
    assert "refused the write" in str(outcomes[1])
    assert [outcomes[0][0].seq, outcomes[2][0].seq] == [12, 13]
