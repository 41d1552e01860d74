"""The admin of the record: everything can be read, nothing changed, nothing counted."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from traces_app import admin as record_admin
from traces_app import journal
from traces_app.models import Checkpoint, JournalEntry, Trace, TraceEvent
from traces_app.omnimessage import user_text

pytestmark = pytest.mark.django_db

MODELS = [Trace, TraceEvent, Checkpoint, JournalEntry]


def address(model, *more: object) -> str:
    return "/".join(["/admin/traces_app", model._meta.model_name, *map(str, more), ""])


@pytest.fixture
def full(make_trace):
    trace = make_trace([user_text("hello")])
    journal.record("read", "ann", session_id=trace.session_id)
    return trace


@pytest.mark.parametrize("model", MODELS)
def test_list_shows_rows_without_counting(admin_client, full, model):
    with CaptureQueriesContext(connection) as captured:
        response = admin_client.get(address(model))

    assert response.status_code == 200
    asked = [q["sql"] for q in captured if f'FROM "{model._meta.db_table}"' in q["sql"]]
    assert asked
    assert not any("COUNT(" in sql or "OFFSET" in sql for sql in asked)


@pytest.mark.parametrize("model", MODELS)
def test_row_can_be_read_and_not_changed(admin_client, full, model):
    row = model.objects.first()

    assert admin_client.get(address(model, row.pk, "change")).status_code == 200
    assert admin_client.post(address(model, row.pk, "change"), {}).status_code == 403
    assert admin_client.post(address(model, row.pk, "delete"), {}).status_code == 403
    assert admin_client.get(address(model, "add")).status_code == 403


def test_event_shows_its_hash_and_body(admin_client, full):
    event = TraceEvent.objects.get(seq=2)

    page = admin_client.get(address(TraceEvent, event.pk, "change")).content.decode()

    assert bytes(event.hash).hex() in page
    assert "hello" in page


def test_older_rows_are_reached_by_key(admin_client, make_trace, monkeypatch):
    for kind in (record_admin.ReadOnlyAdmin, record_admin.TraceEventAdmin):
        monkeypatch.setattr(kind, "list_per_page", 5)
    monkeypatch.setattr(record_admin, "_PER_PAGE", 5)
    make_trace([user_text(str(number)) for number in range(8)])
    newest = TraceEvent.objects.order_by("-pk")[4].pk

    first = admin_client.get(address(TraceEvent)).content.decode()
    second = admin_client.get(address(TraceEvent) + f"?older={newest}").content.decode()

    assert f"?older={newest}" in first
    assert f"/traceevent/{newest - 1}/change/" in second
    assert f"/traceevent/{newest}/change/" not in second


def test_people_without_the_right_see_nothing(client, django_user_model, full):
    person = django_user_model.objects.create_user("bob", password="x", is_staff=True)
    client.force_login(person)

    assert client.get(address(Trace)).status_code == 403
