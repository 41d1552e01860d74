"""The app of the record; it puts the append-only triggers in place after migrating."""

from __future__ import annotations

from django.apps import AppConfig
from django.db.backends.signals import connection_created
from django.db.models.signals import post_migrate


class TracesAppConfig(AppConfig):
    name = "traces_app"
    verbose_name = "Traces"

    def ready(self) -> None:
        """Connect the triggers; nothing is started and no database is touched."""
        from traces_app import append_only

        connection_created.connect(
            append_only.prepare_connection, dispatch_uid="traces_app.append_only"
        )
        post_migrate.connect(
            append_only.after_migrate, sender=self, dispatch_uid="traces_app.triggers"
        )
