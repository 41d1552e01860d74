"""Settings: the only place that reads the environment; a wrong value stops the start."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from csp.constants import NONE, SELF
from django.core.exceptions import ImproperlyConfigured

from penguin_web.keys import key_text
from penguin_web.variables import Variables, usable_folder

BASE_DIR = Path(__file__).resolve().parent.parent
read = Variables(BASE_DIR / ".env")

DATA_DIR = usable_folder(
    read.folder("PENGUIN_DATA_DIR", BASE_DIR / "data"), name="PENGUIN_DATA_DIR"
)
WORKSPACES_DIR = read.folder("PENGUIN_WORKSPACES_DIR", BASE_DIR / "workspaces")
if WORKSPACES_DIR.is_relative_to(DATA_DIR):
    raise ImproperlyConfigured(
        f"PENGUIN_WORKSPACES_DIR {WORKSPACES_DIR} lies inside the data folder "
        f"{DATA_DIR}, where commands would find keys and records; choose another."
    )

DEBUG = read.flag("DEBUG")
HOST = read.text("HOST", "127.0.0.1")
PORT = read.number("PORT", 8000, low=0, high=65535)
SECRET_KEY = read.text("SECRET_KEY") or key_text(
    read.text("SECRET_KEY_FILE"),
    DATA_DIR / "keys" / "secret_key",
    name="SECRET_KEY_FILE",
)
SIGNING_KEY_FILE = read.folder(
    "PENGUIN_SIGNING_KEY_FILE", DATA_DIR / "keys" / "signing_key.pem"
)
SECRETS_KEY_FILE = read.folder(
    "PENGUIN_SECRETS_KEY_FILE", DATA_DIR / "keys" / "secrets_key"
)
WITNESS_FILE = DATA_DIR / "witness.jsonl"

# Behind a proxy: its X-Forwarded-* headers tell host, scheme and the caller's address.
TRUST_PROXY = read.flag("TRUST_PROXY")
ALLOWED_HOSTS = read.names("ALLOWED_HOSTS", ["localhost", "127.0.0.1", "[::1]", HOST])
CSRF_TRUSTED_ORIGINS = read.origins("CSRF_TRUSTED_ORIGINS")

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "channels",
    "csp",
    "axes",
    "penguin_web",
    "traces_app",
    "sessions_app",
]
MIDDLEWARE = [
    "penguin_web.middleware.guard",
    "sessions_app.api.errors.json_errors",
    "django.middleware.security.SecurityMiddleware",
    "servestatic.middleware.ServeStaticMiddleware",
    "csp.middleware.CSPMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "axes.middleware.AxesMiddleware",
    "sessions_app.views.errors.StorageErrors",
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
                "penguin_web.one_time_password.notice",
                "sessions_app.frame.context",
            ]
        },
    }
]

_database = read.database("DATABASE_URL", DATA_DIR / "penguin.sqlite3")
# Requests borrow threads that keep their connection, see request_threads.py.
_database["CONN_MAX_AGE"] = 600
_database["CONN_HEALTH_CHECKS"] = True
if _database["ENGINE"].endswith("sqlite3"):
    _database["OPTIONS"] = {
        "transaction_mode": "IMMEDIATE",
        "timeout": 20,
        "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;",
    }
DATABASES = {"default": _database}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

REDIS_URL = read.text("REDIS_URL")
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
AXES_LOCKOUT_TEMPLATE = "registration/lockout.html"
# The only hasher for new passwords; the page asks to change the first admin's.
PASSWORD_HASHERS = ["django.contrib.auth.hashers.Argon2PasswordHasher"]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator"},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "/"
LOGOUT_REDIRECT_URL = "login"
# Both cookies are also marked Secure whenever the request came by https.
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
CSRF_COOKIE_HTTPONLY = True
CSRF_COOKIE_SAMESITE = "Lax"
CSRF_FAILURE_VIEW = "sessions_app.views.errors.csrf_failure"
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [SELF],
        "img-src": [SELF],
        "connect-src": [SELF],  # holds for the WebSocket of the same host too
        "object-src": [NONE],
        "base-uri": [NONE],
        "form-action": [SELF],
        "frame-ancestors": [NONE],
    }
}
# A message may carry images as data URLs.
DATA_UPLOAD_MAX_MEMORY_SIZE = 32 * 1024 * 1024

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
    "openai": read.text("OPENAI_BASE_URL"),
    "anthropic": read.text("ANTHROPIC_BASE_URL"),
}

LOGGING: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "line": {
            "()": "penguin_web.log_lines.LineFormatter",
            "secrets": [SECRET_KEY, *PROVIDER_KEYS.values()],
        }
    },
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["stderr"], "level": "INFO"},
    "loggers": {
        # Django's own handlers would print each of these a second time.
        "django": {"handlers": [], "level": "WARNING"},
        "django.request": {"level": "ERROR"},
        "django.server": {"handlers": [], "propagate": True},
        "daphne": {"level": "WARNING"},
        "axes": {"level": "WARNING"},
        # At INFO the SDKs' HTTP client writes every address it asks.
        "httpx": {"level": "WARNING"},
        "httpx2": {"level": "WARNING"},
        "httpcore": {"level": "WARNING"},
    },
}
