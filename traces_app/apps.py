"""The app of the record; it puts the append-only triggers in place after migrating."""

from __future__ import annotations

from django.apps import AppConfig
from django.db.backends.signals import connection_created
from django.db.models.signals import post_migrate

from traces_app import append_only


class TracesAppConfig(AppConfig):
    """Connects the triggers; starts nothing and touches no database."""

    name = "traces_app"
    verbose_name = "Traces"

    def ready(self) -> None:
        """Have every connection prepared and every migration followed up."""
        connection_created.connect(
            append_only.prepare_connection, dispatch_uid="traces_app.connection"
        )
        post_migrate.connect(
            append_only.after_migrate, sender=self, dispatch_uid="traces_app.triggers"
        )
