"""The rules of the house, held by the tools that know them."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.management import call_command

ROOT = Path(__file__).parent.parent
BIN = Path(sys.executable).parent
PACKAGES = ["penguin_web", "sessions_app", "traces_app"]
SOURCES = [ROOT / "manage.py"] + [
    path
    for package in PACKAGES
    for path in sorted((ROOT / package).rglob("*.py"))
    if "migrations" not in path.parts
]
LONGEST_FILE = 300


def run(*command: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [str(BIN / command[0]), *command[1:]], cwd=ROOT, capture_output=True, text=True
    )


def tracked_files(*patterns: str) -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--", *patterns],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    if listed.returncode != 0:
        pytest.skip("Not a git checkout: which files belong to it is unknown.")
    return [ROOT / name for name in listed.stdout.split("\0") if name]


def test_imports_follow_the_architecture():
    done = run("lint-imports", "--no-logo")

    assert done.returncode == 0, done.stdout


def test_ruff_finds_nothing():
    done = run("ruff", "check", "--quiet", ".")

    assert done.returncode == 0, done.stdout


def test_every_file_is_formatted():
    done = run("ruff", "format", "--check", "--quiet", ".")

    assert done.returncode == 0, done.stdout


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_types_hold():
    done = run("mypy")

    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_source_file_is_short_and_says_what_it_is_for(path):
    text = path.read_text()

    assert len(text.splitlines()) <= LONGEST_FILE
    assert ast.get_docstring(ast.parse(text)), "the first line says what it is for"


@pytest.mark.django_db
def test_models_and_migrations_agree():
    call_command("makemigrations", check=True, dry_run=True, verbosity=0)


def test_only_the_settings_read_the_environment():
    """Commands of agents get theirs from the environment package; that is its job."""
    readers = re.compile(r"os\.(environ|getenv)|environ\.Env")
    allowed = {"penguin_web/settings.py", "penguin_web/variables.py"}

    found = {
        str(path.relative_to(ROOT))
        for path in SOURCES
        if readers.search(path.read_text())
        and not path.is_relative_to(ROOT / "sessions_app" / "environment")
        and "setdefault(" not in path.read_text()
    }

    assert found <= allowed


def test_env_example_lists_every_variable_the_settings_read():
    tree = ast.parse((ROOT / "penguin_web" / "settings.py").read_text())
    read = {
        call.args[0].value
        for call in ast.walk(tree)
        if isinstance(call, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and isinstance(call.func.value, ast.Name)
        and call.func.value.id == "read"
    }

    listed = re.findall(r"^([A-Z_]+)=", (ROOT / ".env.example").read_text(), re.M)

    keys = {"OPENAI_API_KEY", "ANTHROPIC_API_KEY"}  # read as <NAME>_API_KEY
    assert set(listed) == read | keys
    assert len(listed) == len(set(listed))


def test_the_lock_names_no_server_to_install_from():
    lock = (ROOT / "requirements.lock").read_text()

    assert "://" not in lock
    assert not re.search(r"^\s*-", lock.replace("    --hash", ""), re.M)


def test_the_lock_holds_every_dependency_with_hashes():
    lock = (ROOT / "requirements.lock").read_text()
    locked = set(re.findall(r"^([a-z0-9-]+)==", lock, re.M))
    project = (ROOT / "pyproject.toml").read_text()
    wanted = re.findall(r'^    "([A-Za-z0-9-]+)(?:\[[a-z]+\])?[><=]', project, re.M)

    assert len(wanted) > 30
    assert {name.lower() for name in wanted} <= locked
    assert lock.count("--hash=sha256:") >= len(locked)


def test_version_is_the_same_everywhere():
    from penguin_web import __version__

    assert f'version = "{__version__}"' in (ROOT / "pyproject.toml").read_text()
    assert f"## [{__version__}]" in (ROOT / "CHANGELOG.md").read_text()


def test_tests_import_no_private_names():
    """A leading underscore means: only this module."""
    private = re.compile(
        rf"^from (?:{'|'.join(PACKAGES)})[\w.]* import .*\b_\w+", re.MULTILINE
    )

    found = [
        str(path.relative_to(ROOT))
        for path in (ROOT / "tests").rglob("*.py")
        if private.search(path.read_text())
    ]

    assert found == []


def test_hostile_text_has_no_way_around_escaping():
    ways = re.compile(
        r"\|safe\b|mark_safe\(|\.innerHTML|insertAdjacentHTML|csrf_exempt|shell=True|yaml\.load\("
    )

    found = [
        str(path.relative_to(ROOT))
        for path in tracked_files("*.html", "*.js", *(f"{p}/*.py" for p in PACKAGES))
        if "vendor" not in path.parts and ways.search(path.read_text())
    ]

    assert found == []


def test_the_build_machine_runs_the_readme_s_command():
    script = ROOT / ".ci" / "run"

    assert script.stat().st_mode & 0o100
    assert "make test" in script.read_text()
    assert "make test" in (ROOT / "README.md").read_text()
