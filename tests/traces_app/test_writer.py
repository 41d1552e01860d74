"""Appending: order, groups, failures that stay with who caused them."""

import asyncio

import pytest
from channels.db import database_sync_to_async
from django.db import transaction

from traces_app import group_commit, reader, writer
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


def test_event_rows_hold_one_head_per_trace(make_trace):
    first, second = make_trace(), make_trace()

    writer.append(first.pk, [user_text("x")])
    writer.append(second.pk, [user_text("x")])

    rows = TraceEvent.objects.filter(seq=2)
    assert {row.trace_id for row in rows} == {first.pk, second.pk}
