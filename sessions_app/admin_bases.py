"""What the admin classes stand on: typed bases, bounded counting, reading only."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.core import paginator
from django.db import models
from django.db.models import QuerySet
from django.http import HttpRequest

# Django's own classes know no type arguments when they run.
if TYPE_CHECKING:
    ModelAdmin = admin.ModelAdmin[Any]
    TabularInline = admin.TabularInline[Any, Any]
    Paginator = paginator.Paginator[Any]
else:
    ModelAdmin, TabularInline = admin.ModelAdmin, admin.TabularInline
    Paginator = paginator.Paginator


class BoundedPaginator(Paginator):
    """Counts no further than `LIMIT`: an exact count of a long table takes seconds."""

    LIMIT = 10_000

    @cached_property
    def count(self) -> int:
        """Return the number of rows, `LIMIT` at most."""
        rows = self.object_list
        assert isinstance(rows, QuerySet)
        return rows.order_by().values("pk")[: self.LIMIT].count()


class ReadOnlyAdmin(ModelAdmin):
    """Shows rows that only the product itself writes."""

    paginator = BoundedPaginator
    show_full_result_count = False
    list_per_page = 50

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Refuse."""
        return False

    def has_change_permission(
        self, request: HttpRequest, obj: models.Model | None = None
    ) -> bool:
        """Refuse."""
        return False

    def has_delete_permission(
        self, request: HttpRequest, obj: models.Model | None = None
    ) -> bool:
        """Refuse."""
        return False
