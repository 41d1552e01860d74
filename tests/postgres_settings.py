"""The tests' settings on the PostgreSQL whose socket folder a variable names."""

import os

from tests.settings import *  # noqa: F403

DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": "postgres",
        "USER": "postgres",
        "HOST": os.environ["PENGUIN_TEST_SOCKET"],
    }
}
