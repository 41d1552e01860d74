"""Settings: the only place that reads the environment; a wrong value stops the start."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import environ

from penguin_web.keys import key_text

BASE_DIR = Path(__file__).resolve().parent.parent
env = environ.Env()

DATA_DIR = Path(env.str("PENGUIN_DATA_DIR", default=str(BASE_DIR / "data"))).resolve()
WORKSPACES_DIR = Path(
    env.str("PENGUIN_WORKSPACES_DIR", default=str(BASE_DIR / "workspaces"))
).resolve()

DEBUG = env.bool("DEBUG", default=False)
HOST = env.str("HOST", default="127.0.0.1")
PORT = env.int("PORT", default=8000)
SECRET_KEY = env.str("SECRET_KEY", default="") or key_text(
    env.str("SECRET_KEY_FILE", default=""), DATA_DIR / "keys" / "secret_key"
)
SIGNING_KEY_FILE = Path(
    env.str(
        "PENGUIN_SIGNING_KEY_FILE", default=str(DATA_DIR / "keys" / "signing_key.pem")
    )
)
SECRETS_KEY_FILE = Path(
    env.str(
        "PENGUIN_SECRETS_KEY_FILE", default=str(DATA_DIR / "keys" / "secrets_key")
    )
)
WITNESS_FILE = DATA_DIR / "witness.jsonl"
ALLOWED_HOSTS = env.list(
    "ALLOWED_HOSTS", default=["localhost", "127.0.0.1", "[::1]", HOST]
)
CSRF_TRUSTED_ORIGINS = env.list("CSRF_TRUSTED_ORIGINS", default=[])

INSTALLED_APPS = [
    "daphne",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "channels",
    "csp",
    "axes",
    "traces_app",
    "sessions_app",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "servestatic.middleware.ServeStaticMiddleware",
    "csp.middleware.CSPMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]
ROOT_URLCONF = "penguin_web.urls"
ASGI_APPLICATION = "penguin_web.asgi.application"
TEMPLATES: list[dict[str, Any]] = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]

_database = env.db_url("DATABASE_URL", default=f"sqlite:///{DATA_DIR / 'penguin.sqlite3'}")
if _database["ENGINE"].endswith("sqlite3"):
    _database["OPTIONS"] = {
        "transaction_mode": "IMMEDIATE",
        "timeout": 20,
        "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;",
    }
    # A file, because the in-memory database answers "table is locked" at once.
    _database["TEST"] = {
        "NAME": str(Path(tempfile.gettempdir()) / f"penguin-test-{os.getpid()}.sqlite3")
    }
DATABASES = {"default": _database}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

REDIS_URL = env.str("REDIS_URL", default="")
CHANNEL_LAYERS: dict[str, dict[str, Any]] = {
    "default": {
        "BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer",
        "CONFIG": {"hosts": [REDIS_URL]},
    }
    if REDIS_URL
    else {"BACKEND": "channels.layers.InMemoryChannelLayer"}
}

AUTHENTICATION_BACKENDS = [
    "axes.backends.AxesStandaloneBackend",
    "django.contrib.auth.backends.ModelBackend",
    "sessions_app.permissions.ProjectRoleBackend",
]
AXES_FAILURE_LIMIT = 10
AXES_COOLOFF_TIME = 0.25  # hours
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]
PASSWORD_HASHERS = ["django.contrib.auth.hashers.Argon2PasswordHasher"]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator"},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "/"
LOGOUT_REDIRECT_URL = "login"

LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
USE_I18N = True
USE_TZ = True

STATIC_URL = "static/"
STATIC_ROOT = DATA_DIR / "static"
STATICFILES_DIRS = [BASE_DIR / "static"]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {
        "BACKEND": "servestatic.storage.CompressedManifestStaticFilesStorage"
    },
}

# Keys of model providers, until a project stores its own. Read once, never handed on.
PROVIDER_KEYS = {
    name.removesuffix("_API_KEY").lower(): value
    for name, value in os.environ.items()
    if name.endswith("_API_KEY") and value
}
PROVIDER_BASE_URLS = {
    "openai": env.str("OPENAI_BASE_URL", default=""),
    "anthropic": env.str("ANTHROPIC_BASE_URL", default=""),
}
