"""Exports: the same bytes as recorded, streamed, and a bundle that proves itself."""

import csv
import io
import json
import subprocess
import sys
import zipfile

import pytest

from tests.traces_app.conftest import TURN_EVENTS, turn
from traces_app import exports, otlp, reader, writer
from traces_app.erasure import erase_body
from traces_app.models import TraceEvent
from traces_app.omnimessage import OmniMessage, assistant_text, tool_call, user_text

pytestmark = pytest.mark.django_db(transaction=True)

IMAGE = "data:image/png;base64," + "iVBORw0KGgo/" * 9000


def read(chunks) -> bytes:
    return b"".join(chunks)


@pytest.fixture
def unpack(tmp_path):
    """Make the bundle of a record and return the folder it was unpacked to."""

    def make(trace):
        path = tmp_path / "bundle.zip"
        path.write_bytes(read(exports.bundle(trace)))
        folder = tmp_path / "bundle"
        with zipfile.ZipFile(path) as file:
            file.extractall(folder)
        return folder

    return make


def check(folder, *arguments):
    """Run the bundle's own verifier as anybody would."""
    return subprocess.run(
        [sys.executable, "-I", "-S", str(folder / "verify.py"), *arguments],
        capture_output=True,
        text=True,
        check=False,
    )


def edit(path, before: bytes, after: bytes) -> None:
    content = path.read_bytes()
    assert before in content
    path.write_bytes(content.replace(before, after, 1))


def test_jsonl_holds_the_recorded_envelopes_and_nothing_else(make_trace):
    trace = make_trace([*turn(), user_text(IMAGE), user_text("ünd\u2028\n")])

    lines = read(exports.jsonl(trace)).decode().split("\n")

    assert lines.pop() == ""
    assert lines == [event.json for event in reader.iter_events(trace.pk)]
    assert OmniMessage.from_json(lines[0]).kind == "session_meta"


def test_jsonl_resumes_behind_a_seq(trace):
    whole = read(exports.jsonl(trace)).splitlines()

    assert read(exports.jsonl(trace, after=4)).splitlines() == whole[4:]


def test_export_ends_at_the_head_it_began_with(trace):
    chunks = exports.jsonl(trace)
    writer.append(trace.pk, [user_text("later")])

    assert len(read(chunks).splitlines()) == TURN_EVENTS


def test_csv_holds_every_field_and_no_formula(make_trace):
    call = tool_call("=cmd|'/c calc'!A1", "{}", "@call")
    trace = make_trace([call])

    rows = list(csv.DictReader(io.StringIO(read(exports.as_csv(trace)).decode())))

    assert rows[1]["tool"] == "'=cmd|'/c calc'!A1"
    assert rows[1]["tool_call_id"] == "'@call"
    assert rows[1]["body"] == reader.event_at(trace.pk, 2).json
    assert rows[1]["hash"] == reader.event_at(trace.pk, 2).hash
    assert not any(
        cell.startswith(("=", "+", "-", "@")) for r in rows for cell in r.values()
    )


def test_otlp_is_one_document_with_every_record_in_it(make_trace):
    trace = make_trace([*turn(), user_text("alone")])

    document = json.loads(read(otlp.otlp(trace)))

    scope = document["resourceSpans"][0]["scopeSpans"][0]
    spans = {span["name"]: span for span in scope["spans"]}
    assert scope["schemaUrl"].startswith("https://opentelemetry.io/schemas/")
    assert {"invoke_agent", "chat demo", "execute_tool exec_command"} <= set(spans)
    bodies = {}
    for span in scope["spans"]:
        for record in span["events"]:
            values = {each["key"]: each["value"] for each in record["attributes"]}
            seq = int(values["penguin.seq"]["intValue"])
            bodies[seq] = values["penguin.body"]["stringValue"]
    assert bodies == {e.seq: e.json for e in reader.iter_events(trace.pk)}
    parents = {span.get("parentSpanId") for span in scope["spans"]}
    assert parents == {None, spans["invoke_agent"]["spanId"]}


def test_otlp_marks_failed_calls(make_trace):
    from traces_app.omnimessage import StopReason, tool_call_output

    messages = [*turn()[:6], tool_call_output("call_1", "boom", StopReason.FAILED)]

    document = json.loads(read(otlp.otlp(make_trace(messages))))

    spans = document["resourceSpans"][0]["scopeSpans"][0]["spans"]
    call = next(span for span in spans if span["name"].startswith("execute_tool"))
    assert call["status"] == {"code": 2, "message": "failed"}


def test_bundle_proves_itself_without_the_product(make_trace, unpack):
    folder = unpack(make_trace([*turn(), user_text(IMAGE)]))

    done = check(folder)

    assert done.returncode == 0, done.stdout + done.stderr
    assert "intact: yes" in done.stdout
    assert "complete: yes" in done.stdout
    assert len((folder / "verify.py").read_text().splitlines()) <= 300


def test_verifier_also_takes_the_zip_and_a_trusted_key(trace, unpack):
    from traces_app.signing import signing_key

    folder = unpack(trace)
    bundle = str(folder.parent / "bundle.zip")

    good = check(folder, bundle, "--key", signing_key().public_bytes.hex())
    other = check(folder, bundle, "--key", "11" * 32)

    assert (good.returncode, other.returncode) == (0, 1)


def test_changed_byte_of_the_record_is_named(trace, unpack):
    folder = unpack(trace)
    edit(folder / "trace.jsonl", b"a.txt", b"b.txt")

    done = check(folder)

    assert done.returncode == 1
    assert "event #8 was changed" in done.stdout


def test_removed_last_lines_are_found(trace, unpack):
    folder = unpack(trace)
    path = folder / "trace.jsonl"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-3]))

    done = check(folder)

    assert done.returncode == 1
    assert "#9 is missing" in done.stdout


def test_record_and_proof_cut_together_are_found(trace, unpack):
    folder = unpack(trace)
    path = folder / "trace.jsonl"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-3]))
    path = folder / "proof.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    about = json.loads(lines[0])
    about |= {"count": 8, "head_hash": json.loads(lines[8])["hash"]}
    kept = [json.dumps(about).encode() + b"\n", *lines[1:9], *lines[12:]]
    path.write_bytes(b"".join(kept))

    done = check(folder)

    assert done.returncode == 1
    assert "checkpoint at #11" in done.stdout


@pytest.mark.parametrize(
    ("before", "after"),
    [(b'"count":11', b'"count":12'), (b'"signature":"', b'"signature":"00')],
)
def test_changed_checkpoint_of_a_bundle_is_found(trace, unpack, before, after):
    folder = unpack(trace)
    path = folder / "proof.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    index = next(i for i, line in enumerate(lines) if line.startswith(b'{"checkpoint"'))
    lines[index] = lines[index].replace(before, after)
    path.write_bytes(b"".join(lines))

    assert check(folder).returncode == 1


def test_incomplete_record_ends_with_two(make_trace, unpack):
    messages = turn()
    del messages[6]  # the output

    done = check(unpack(make_trace(messages)))

    assert done.returncode == 2
    assert "no output before the next request" in done.stdout


def test_open_task_is_in_progress_and_good(make_trace, unpack):
    done = check(unpack(make_trace(turn()[:5])))

    assert done.returncode == 0
    assert "in progress" in done.stdout


def test_erased_body_keeps_the_bundle_good(trace, unpack):
    event = TraceEvent.objects.get(trace=trace, seq=8)
    erase_body(event, by="root", reason="a password")

    done = check(unpack(trace))

    assert done.returncode == 0, done.stdout
    assert "the body of #8 was erased by root" in done.stdout
    assert "a password" in done.stdout


def test_change_that_poses_as_an_erasure_is_found(trace, unpack):
    folder = unpack(trace)
    edit(folder / "trace.jsonl", b"a.txt", b"b.txt")
    path = folder / "proof.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    lines[8] = lines[8].replace(b"{", b'{"erased":{},', 1)
    path.write_bytes(b"".join(lines))

    done = check(folder)

    assert done.returncode == 1
    assert "event #8 claims to be erased" in done.stdout


def test_what_is_no_bundle_is_unreadable(tmp_path, trace, unpack):
    folder = unpack(trace)
    (tmp_path / "x.zip").write_text("no zip")

    assert check(folder, str(tmp_path / "x.zip")).returncode == 3
    assert check(folder, str(tmp_path / "nothing.zip")).returncode == 3


def test_record_of_another_session_does_not_fit_the_proof(make_trace, unpack, tmp_path):
    folder = unpack(make_trace(turn()))
    other = make_trace(turn("call_2"))
    (folder / "trace.jsonl").write_bytes(read(exports.jsonl(other)))

    assert check(folder).returncode == 1


def test_long_record_is_streamed_in_pieces(make_trace):
    trace = make_trace([assistant_text("x" * 1000) for _ in range(300)])

    pieces = list(exports.jsonl(trace))

    assert len(pieces) > 3
    assert max(map(len, pieces)) < 100_000
