"""The site's settings for tests: nothing of the machine's own set-up is used."""

import atexit
import os
import shutil
import tempfile
from pathlib import Path

_folder = Path(tempfile.mkdtemp(prefix="penguin-tests-"))
atexit.register(shutil.rmtree, _folder, ignore_errors=True)

# An empty variable counts as unset and also keeps a developer's .env out.
for _line in (Path(__file__).parent.parent / ".env.example").read_text().splitlines():
    _name, _is_variable, _ = _line.partition("=")
    if _is_variable and _name.isidentifier():
        os.environ[_name] = ""
for _name in [name for name in os.environ if name.endswith("_API_KEY")]:
    os.environ[_name] = ""
os.environ["PENGUIN_DATA_DIR"] = str(_folder / "data")
os.environ["PENGUIN_WORKSPACES_DIR"] = str(_folder / "workspaces")
# Commands are login shells: a heavy profile would cost a second for each of them.
os.environ.setdefault(
    "PLAYWRIGHT_BROWSERS_PATH", str(Path.home() / ".cache" / "ms-playwright")
)
os.environ["HOME"] = str(_folder / "home")
(_folder / "home").mkdir()
(_folder / "data" / "static").mkdir(parents=True)

from penguin_web.settings import *  # noqa: E402, F403 (the environment comes first)

# A file, because SQLite's in-memory database answers "table is locked" at once; in a
# folder of its own, so that journals beside it go with it.
DATABASES["default"]["TEST"] = {"NAME": str(_folder / "test.sqlite3")}  # noqa: F405
ALLOWED_HOSTS = ["testserver", "localhost", "127.0.0.1"]
# Argon2 takes 50 ms on purpose; a suite logs in hundreds of times.
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
}
