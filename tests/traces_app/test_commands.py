"""The commands: what they print, and how they end."""

import io
import json
import zipfile

import pytest
from django.core.management import CommandError, call_command

from tests.traces_app.conftest import session_meta, turn
from traces_app import reader, writer
from traces_app.models import JournalEntry, Trace
from traces_app.omnimessage import user_text

pytestmark = pytest.mark.django_db(transaction=True)


def run(*arguments: str) -> tuple[int, str]:
    """Return exit code and what was printed, both streams."""
    out = io.StringIO()
    try:
        call_command(*arguments, stdout=out, stderr=out)
    except SystemExit as end:
        return int(end.code), out.getvalue()
    return 0, out.getvalue()


def test_good_record_ends_with_zero(trace):
    code, said = run("verify_trace", trace.session_id)

    assert code == 0
    assert f"{trace.session_id}: intact; complete" in said
    assert "11 events" in said
    assert "in one folder" in said


def test_open_task_counts_as_in_progress(make_trace):
    trace = make_trace(turn()[:4])

    code, said = run("verify_trace", trace.session_id)

    assert code == 0
    assert "in progress: the call call_1" in said


def test_tampered_record_ends_with_one_and_names_the_place(trace, tamper):
    tamper("UPDATE traces_app_traceevent SET kind = 'thinking' WHERE seq = 2")

    code, said = run("verify_trace", trace.session_id)

    assert code == 1
    assert "NOT intact (first bad event #2)" in said
    assert "; complete" in said


def test_incomplete_record_ends_with_two(make_trace):
    messages = turn()
    del messages[4]  # the decision

    code, said = run("verify_trace", make_trace(messages).session_id)

    assert code == 2
    assert ": intact; NOT complete" in said


def test_session_nobody_knows_is_unreadable():
    code, said = run("verify_trace", "session-nobody")

    assert code == 3
    assert "session-nobody" in said


def test_key_that_cannot_be_read_is_unreadable(trace, settings, tmp_path):
    settings.SIGNING_KEY_FILE = tmp_path / "key.pem"
    settings.SIGNING_KEY_FILE.write_text("no key")

    assert run("verify_trace", trace.session_id)[0] == 3


def test_all_records_are_verified_by_default(make_trace, tamper):
    good, bad = make_trace(turn()), make_trace(turn())
    tamper(
        "DELETE FROM traces_app_eventbody WHERE event_id IN "
        "(SELECT id FROM traces_app_traceevent WHERE trace_id = %s)",
        bad.pk,
    )

    for arguments in (["--all"], []):
        code, said = run("verify_trace", *arguments)

        assert code == 1
        assert f"{good.session_id}: intact" in said
        assert f"{bad.session_id}: NOT intact" in said


def test_dropped_session_is_told_by_all(make_trace, tamper):
    dropped = make_trace(turn())
    make_trace(turn())
    for table, column in (
        (
            "eventbody",
            "event_id IN (SELECT id FROM traces_app_traceevent WHERE trace_id",
        ),
        ("traceevent", "(trace_id"),
        ("checkpoint", "(trace_id"),
        ("trace", "(id"),
    ):
        tamper(f"DELETE FROM traces_app_{table} WHERE {column} = %s)", dropped.pk)

    code, said = run("verify_trace", "--all")

    assert code == 1
    assert dropped.session_id in said


def test_verifying_and_exporting_are_in_the_journal(trace, tmp_path):
    run("verify_trace", trace.session_id)
    run("export_trace", trace.session_id, "-o", str(tmp_path / "x.jsonl"))

    kinds = JournalEntry.objects.values_list("kind", "session_id")
    assert set(kinds) == {("verify", trace.session_id), ("export", trace.session_id)}


def test_record_is_exported_to_standard_output(trace, capfdbinary):
    call_command("export_trace", trace.session_id)

    lines = capfdbinary.readouterr().out.decode().splitlines()
    assert lines == [event.json for event in reader.iter_events(trace.pk)]


@pytest.mark.parametrize("form", ["jsonl", "csv", "otlp", "bundle"])
def test_record_is_exported_to_a_file(trace, tmp_path, form):
    path = tmp_path / "export"

    run("export_trace", trace.session_id, "--format", form, "-o", str(path))

    assert path.stat().st_size > 1000
    assert list(tmp_path.iterdir()) == [path]
    if form == "bundle":
        names = set(zipfile.ZipFile(path).namelist())
        assert {"trace.jsonl", "proof.jsonl", "verify.py"} <= names
    if form == "otlp":
        assert json.loads(path.read_text())["resourceSpans"]


def test_export_of_what_is_not_there_is_an_error(tmp_path):
    with pytest.raises(CommandError, match="session-nobody"):
        call_command("export_trace", "session-nobody")


def test_import_gives_the_session_and_export_the_same_bytes(tmp_path):
    content = "\n".join(m.to_json() for m in [session_meta("session-theirs"), *turn()])
    (tmp_path / "in.jsonl").write_text(content)

    code, said = run("import_trace", str(tmp_path / "in.jsonl"), "--project", "default")
    run("export_trace", "session-theirs", "-o", str(tmp_path / "out.jsonl"))

    assert (code, said.strip()) == (0, "session-theirs")
    assert (tmp_path / "out.jsonl").read_text() == content
    assert run("verify_trace", "session-theirs")[0] == 0


def test_import_tells_line_and_reason(tmp_path):
    path = tmp_path / "in.jsonl"
    path.write_text(session_meta("session-theirs").to_json() + '\n{"torn')
    err = io.StringIO()

    with pytest.raises(CommandError, match="Nothing was imported"):
        call_command("import_trace", str(path), "--project", "default", stderr=err)

    assert f"{path}:2: not valid JSON" in err.getvalue()
    assert not Trace.objects.exists()

    run("import_trace", str(path), "--project", "default", "--damaged", "mark")
    assert run("verify_trace", "session-theirs")[0] == 2


def test_import_into_no_project_or_over_a_record_is_an_error(trace, tmp_path):
    path = tmp_path / "in.jsonl"
    path.write_text(session_meta(trace.session_id).to_json())

    with pytest.raises(CommandError, match="no project nowhere"):
        call_command("import_trace", str(path), "--project", "nowhere")
    with pytest.raises(CommandError, match="has a record already"):
        call_command("import_trace", str(path), "--project", "default")
    with pytest.raises(CommandError, match="cannot be read"):
        call_command("import_trace", str(tmp_path / "no"), "--project", "default")


def test_work_after_the_last_checkpoint_is_told(trace):
    writer.append(trace.pk, [user_text("more")])

    _, said = run("verify_trace", trace.session_id)

    assert "12 events" in said
    assert "up to #11" in said
