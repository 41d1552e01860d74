"""The app of the record: its triggers after migrating, sign-ins in its journal."""

from __future__ import annotations

from django.apps import AppConfig
from django.contrib.auth.signals import user_logged_in, user_login_failed
from django.db.backends.signals import connection_created
from django.db.models.signals import post_migrate

from traces_app import append_only


class TracesAppConfig(AppConfig):
    """Connects signals; starts nothing and touches no database."""

    name = "traces_app"
    verbose_name = "Traces"

    def ready(self) -> None:
        """Have connections prepared, migrations followed up and sign-ins noted."""
        connection_created.connect(
            append_only.prepare_connection, dispatch_uid="traces_app.connection"
        )
        # Here, because it needs the models, which are loaded by now.
        from traces_app import sign_ins

        user_logged_in.connect(sign_ins.note_sign_in, dispatch_uid="traces_app.sign_in")
        user_login_failed.connect(
            sign_ins.note_failed_sign_in, dispatch_uid="traces_app.sign_in_failed"
        )
        post_migrate.connect(
            append_only.after_migrate, sender=self, dispatch_uid="traces_app.triggers"
        )
