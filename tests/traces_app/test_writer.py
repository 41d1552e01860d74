"""Appending: order, groups, failures that stay with who caused them."""

import asyncio
import sqlite3
import threading

import pytest
from channels.db import database_sync_to_async
from django.db import connection, transaction

from traces_app import group_commit, reader, verify, writer
from traces_app.models import Checkpoint, Trace, TraceEvent
from traces_app.omnimessage import assistant_text, user_text
from traces_app.omnimessage import payloads as p
from traces_app.omnimessage.message import OmniMessage
from traces_app.writer import TraceWriteError, TraceWriter

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
async def trace_writer():
    writing = TraceWriter()
    yield writing
    await writing.aclose()


async def in_thread(function, *arguments, **options):
    return await database_sync_to_async(function)(*arguments, **options)


def texts(trace: Trace) -> list[str]:
    stored = reader.events(trace.pk, kinds=["text"], limit=1000)
    return [event.message.payload.text for event in stored]


def test_append_returns_what_the_reader_reads(trace):
    stored = writer.append(trace.pk, [user_text("one"), user_text("two")])

    assert stored == reader.events(trace.pk, after=stored[0].seq - 1)


def test_append_joins_the_transaction_of_its_caller(trace):
    head = reader.head_seq(trace.pk)

    with pytest.raises(RuntimeError), transaction.atomic():
        writer.append(trace.pk, [user_text("lost")])
        raise RuntimeError

    assert reader.head_seq(trace.pk) == head


def test_partial_message_is_refused(trace):
    partial = OmniMessage(
        payload=p.PartialText(role="assistant", event_type="delta", text="x")
    )

    with pytest.raises(ValueError, match="never recorded"):
        writer.append(trace.pk, [partial])


def test_message_of_a_child_session_is_refused(trace):
    with pytest.raises(ValueError, match="child"):
        writer.append(trace.pk, [user_text("x").with_origin("session-child")])


def test_nul_and_lone_surrogates_never_reach_the_database(trace):
    writer.append(trace.pk, [user_text("a\x00b\ud800c")])

    assert texts(trace)[-1] == "a\u2400b\ufffdc"


def test_long_body_comes_back_exactly(trace):
    image = "data:image/png;base64," + "iVBORw0KGgo/" * 9000
    messages = [user_text("ünd\n" * 20_000), user_text(f"before {image} after")]

    stored = writer.append(trace.pk, messages)

    assert [event.json for event in stored] == [m.to_json() for m in messages]
    assert reader.events(trace.pk, after=stored[0].seq - 1) == stored


def test_image_that_stands_in_two_bodies_is_kept_once(trace):
    from traces_app.models import Blob

    image = "data:image/png;base64," + "iVBORw0KGgo/" * 9000

    writer.append(trace.pk, [user_text(f"one {image}"), user_text(f"two {image}")])

    assert Blob.objects.count() == 1


def test_compaction_begins_a_segment(trace):
    from traces_app.omnimessage import StopReason, event

    end = event(p.CompactionEnd(status=StopReason.COMPLETED))
    failed = event(p.CompactionEnd(status=StopReason.FAILED))

    first = writer.append(trace.pk, [failed, user_text("a"), end, user_text("b")])
    second = writer.append(trace.pk, [user_text("c")])

    assert [event.segment for event in first + second] == [1, 1, 1, 2, 2]


async def test_submission_order_is_the_order_of_seq(trace, trace_writer):
    submitted = [
        trace_writer.submit(trace.pk, assistant_text(str(number)))
        for number in range(200)
    ]

    stored = [(await each)[0] for each in submitted]

    assert [event.seq for event in stored] == list(range(12, 212))
    assert [event.message.payload.text for event in stored] == [
        str(number) for number in range(200)
    ]


async def test_what_is_appended_is_durable_when_append_returns(trace, trace_writer):
    await trace_writer.append(trace.pk, user_text("kept"))

    assert (await in_thread(texts, trace))[-1] == "kept"


async def test_also_and_messages_are_one_transaction(trace, trace_writer):
    def rename():
        Trace.objects.filter(pk=trace.pk).update(title="renamed")

    await trace_writer.append(trace.pk, user_text("x"), also=rename)

    assert (await in_thread(Trace.objects.get, pk=trace.pk)).title == "renamed"


async def test_also_that_raises_fails_alone(make_trace, trace_writer):
    trace, other = await in_thread(make_trace), await in_thread(make_trace)

    def rename_and_raise():
        Trace.objects.filter(pk=trace.pk).update(title="half done")
        raise RuntimeError("no")

    futures = [
        trace_writer.submit(other.pk, user_text("before")),
        trace_writer.submit(trace.pk, user_text("lost"), also=rename_and_raise),
        trace_writer.submit(other.pk, user_text("after")),
        trace_writer.submit(trace.pk, user_text("kept")),
    ]
    outcomes = await asyncio.gather(*futures, return_exceptions=True)

    assert isinstance(outcomes[1], RuntimeError)
    assert await in_thread(texts, other) == ["before", "after"]
    assert await in_thread(texts, trace) == ["kept"]
    assert (await in_thread(Trace.objects.get, pk=trace.pk)).title == ""


async def test_after_that_raises_undoes_its_own_events(trace, trace_writer):
    def refuse(stored):
        raise RuntimeError(f"saw #{stored[0].seq}")

    with pytest.raises(RuntimeError, match="saw #12"):
        await trace_writer.append(trace.pk, user_text("lost"), after=refuse)
    stored = await trace_writer.append(trace.pk, user_text("kept"))

    assert stored[0].seq == 12


async def test_message_that_is_no_json_fails_alone(trace, trace_writer):
    bad = user_text("x")
    bad = OmniMessage(payload=p.Text(role="user", text="x", fidelity=float("nan")))

    outcomes = await asyncio.gather(
        trace_writer.append(trace.pk, bad),
        trace_writer.append(trace.pk, user_text("kept")),
        return_exceptions=True,
    )

    assert isinstance(outcomes[0], ValueError)
    assert outcomes[1][0].seq == 12


async def test_unknown_trace_fails_alone(trace, trace_writer):
    outcomes = await asyncio.gather(
        trace_writer.append(999_999, user_text("x")),
        trace_writer.append(trace.pk, user_text("kept")),
        return_exceptions=True,
    )

    assert isinstance(outcomes[0], LookupError)
    assert outcomes[1][0].seq == 12


async def test_checkpoint_covers_the_last_event(trace, trace_writer):
    stored = await trace_writer.append(trace.pk, user_text("end"), checkpoint=True)

    newest = await in_thread(Checkpoint.objects.order_by("-number").first)
    assert (newest.trace_id, newest.seq) == (trace.pk, stored[-1].seq)


async def test_checkpoint_without_a_message_covers_what_is_there(trace, trace_writer):
    await trace_writer.append(trace.pk, user_text("end"))

    await trace_writer.append(trace.pk, checkpoint=True)

    newest = await in_thread(Checkpoint.objects.order_by("-number").first)
    assert newest.seq == 12


async def test_key_that_cannot_be_used_does_not_stop_the_record(
    trace, trace_writer, settings, tmp_path
):
    settings.SIGNING_KEY_FILE = tmp_path / "no_key.pem"
    settings.SIGNING_KEY_FILE.write_text("no key")

    stored = await trace_writer.append(trace.pk, user_text("kept"), checkpoint=True)

    assert stored[0].seq == 12


async def test_many_events_are_signed_on_the_way(trace, trace_writer, monkeypatch):
    monkeypatch.setattr(group_commit, "CHECKPOINT_EVENTS", 10)

    for _ in range(25):
        await trace_writer.append(trace.pk, user_text("x"))

    seqs = await in_thread(
        lambda: list(
            Checkpoint.objects.order_by("number").values_list("seq", flat=True)
        )
    )
    assert seqs == [11, 22, 33]


async def test_a_closed_writer_takes_nothing(trace):
    writing = TraceWriter()
    pending = writing.submit(trace.pk, user_text("in time"))
    await writing.aclose()

    assert (await pending)[0].seq == 12
    with pytest.raises(TraceWriteError, match="closed"):
        await writing.append(trace.pk, user_text("late"))


async def test_cancelled_append_does_not_disturb_the_others(trace, trace_writer):
    cancelled = asyncio.ensure_future(trace_writer.append(trace.pk, user_text("a")))
    await asyncio.sleep(0)
    cancelled.cancel()

    stored = await trace_writer.append(trace.pk, user_text("b"))

    assert stored[0].seq == 13


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


def test_event_rows_hold_one_head_per_trace(make_trace):
    first, second = make_trace(), make_trace()

    writer.append(first.pk, [user_text("x")])
    writer.append(second.pk, [user_text("x")])

    rows = TraceEvent.objects.filter(seq=2)
    assert {row.trace_id for row in rows} == {first.pk, second.pk}
