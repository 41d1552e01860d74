"""Make the first admin, with a one-time password, when there is no user yet."""

from __future__ import annotations

import secrets
from typing import Any

from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand
from django.db import transaction

from penguin_web import one_time_password, preparation

NAME = "admin"


class Command(BaseCommand):
    """Print one line with the password, once; it works until it is changed."""

    help = "Create the superuser `admin` with a one-time password if nobody exists."
    requires_system_checks: list[str] = []

    def handle(self, **options: Any) -> None:
        """Migrate when needed, since this runs before the first start."""
        preparation.migrate()
        users = get_user_model()._default_manager
        with transaction.atomic():
            if users.exists():
                return
            password = secrets.token_urlsafe(12)
            user = get_user_model().objects.create_superuser(NAME, password=password)
        one_time_password.remember(user)
        self.stdout.write(f"First admin: {NAME} / {password}")
