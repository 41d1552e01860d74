"""Django admin of the record: everything can be seen, nothing changed.

The lists walk by key: no count, no offset, one page and a link to older rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.contrib.admin.views.main import ChangeList
from django.core.paginator import Page, Paginator
from django.db.models import Model, QuerySet
from django.http import HttpRequest

from traces_app.models import Checkpoint, EventBody, JournalEntry, Trace, TraceEvent

_PER_PAGE = 100
# Django's own classes know no type arguments when they run.
if TYPE_CHECKING:
    _Paginator = Paginator[Any]
    _ModelAdmin = admin.ModelAdmin[Any]
else:
    _Paginator = Paginator
    _ModelAdmin = admin.ModelAdmin


class OnePage(_Paginator):
    """The first page and nothing else, so nobody has to count."""

    @cached_property
    def count(self) -> int:
        """Return how many rows the page holds."""
        return len(self.object_list[: self.per_page])

    def page(self, number: int | str) -> Page[Any]:
        """Return the page, whatever number is asked for."""
        return Page(self.object_list[: self.per_page], 1, self)


class OlderFilter(admin.SimpleListFilter):
    """Walks back: `?older=ID` shows the rows before that id."""

    title = "age"
    parameter_name = "older"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """Return one choice, so that the filter is shown; `choices` draws it."""
        return [("0", "Older")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Keep the rows before the id in the address."""
        before = self.value() or ""
        if not (before.isascii() and before.isdigit()):
            return queryset
        return queryset.filter(pk__lt=int(before))

    def choices(self, changelist: ChangeList) -> Iterator[Any]:
        """Offer the newest rows and those older than the last one shown."""
        yield {
            "selected": self.value() is None,
            "query_string": changelist.get_query_string(remove=[self.parameter_name]),
            "display": "Newest",
        }
        rows = list(changelist.queryset[:_PER_PAGE])
        if len(rows) == _PER_PAGE:
            yield {
                "selected": False,
                "query_string": changelist.get_query_string(
                    {self.parameter_name: str(rows[-1].pk)}
                ),
                "display": "Older",
            }


class ReadOnlyAdmin(_ModelAdmin):
    """Shows rows; who may see them is Django's `view` permission."""

    ordering = ("-pk",)
    paginator = OnePage
    list_per_page = _PER_PAGE
    list_filter = (OlderFilter,)
    show_full_result_count = False
    actions = None

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Rows come from the writer alone."""
        return False

    def has_change_permission(
        self, request: HttpRequest, obj: Model | None = None
    ) -> bool:
        """Nobody changes the record."""
        return False

    def has_delete_permission(
        self, request: HttpRequest, obj: Model | None = None
    ) -> bool:
        """Nobody removes from the record."""
        return False


@admin.register(Trace)
class TraceAdmin(ReadOnlyAdmin):
    """Traces by session, newest first."""

    list_display = ("session_id", "project", "owner", "title", "created_at")
    search_fields = ("session_id__exact", "project__exact", "owner__exact")


@admin.register(TraceEvent)
class TraceEventAdmin(ReadOnlyAdmin):
    """Events of all Traces; the session's own page is better for one."""

    list_display = ("trace", "seq", "timestamp", "kind", "tool", "decision", "status")
    list_select_related = ("trace",)
    search_fields = ("trace__session_id__exact",)
    exclude = ("salt", "body_sha256", "hash")
    readonly_fields = ("shown_hash", "shown_body")

    @admin.display(description="hash")
    def shown_hash(self, event: TraceEvent) -> str:
        """Return the chain's hash in hex."""
        return bytes(event.hash).hex()

    @admin.display(description="body")
    def shown_body(self, event: TraceEvent) -> str:
        """Return the text that stands in place; long runs live in blobs."""
        body = EventBody.objects.filter(pk=event.pk).first()
        return body.text if body else ""


@admin.register(Checkpoint)
class CheckpointAdmin(ReadOnlyAdmin):
    """The instance's chain of signed heads."""

    list_display = ("number", "trace", "seq", "created_at")
    list_select_related = ("trace",)
    search_fields = ("trace__session_id__exact",)
    exclude = ("hash", "signature")


@admin.register(JournalEntry)
class JournalEntryAdmin(ReadOnlyAdmin):
    """What people did to the record."""

    ordering = ("-seq",)  # as the indexes go
    list_display = ("seq", "timestamp", "kind", "person", "session_id", "project")
    search_fields = ("person__exact", "session_id__exact", "kind__exact")
    exclude = ("salt", "body_sha256", "hash", "occasion")
