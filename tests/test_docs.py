"""The documents under docs/ tell the truth: their examples run, their names exist."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
EXAMPLE = re.compile(r"```python\n(.*?)```\s*```text\n(.*?)```", re.DOTALL)


def examples(name: str) -> list[tuple[str, str]]:
    return EXAMPLE.findall((DOCS / name).read_text())


def title(example: tuple[str, str]) -> str:
    return example[1].splitlines()[0][:30]


@pytest.mark.parametrize("example", examples("sdk.md"), ids=title)
def test_example_of_the_sdk_prints_what_the_page_says(example, tmp_path):
    program, expected = example
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("DJANGO", "PENGUIN"))
    }

    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        env={**environment, "PYTHONPATH": str(ROOT)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
    )

    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == sorted(expected.splitlines())
    assert done.stderr == ""


def test_every_program_of_the_sdk_page_has_its_output():
    text = (DOCS / "sdk.md").read_text()

    assert text.count("```python") == len(examples("sdk.md")) >= 5


def test_names_of_the_sdk_page_can_be_imported():
    rows = re.findall(
        r"^\| `([\w.]+)` \| (.*) \|$", (DOCS / "sdk.md").read_text(), re.M
    )

    assert len(rows) == 4
    for module, names in rows:
        wanted = ", ".join(re.findall(r"`(\w+)`", names))
        program = f"import sys\nfrom {module} import {wanted}\nassert 'django' not in sys.modules"
        done = subprocess.run(
            [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr


def curls() -> list[tuple[str, str]]:
    """Return method and path of every request of the API page."""
    text = (DOCS / "api.md").read_text().replace("\\\n", " ")
    found = []
    for line in re.findall(r"^curl .*$", text, re.MULTILINE):
        method = re.search(r"-X (\w+)", line)
        (path,) = re.findall(r"\$PENGUIN/([^\s\"?]+)", line)
        found.append((method[1] if method else "GET", path))
    return found


def is_path(path: str, pattern: str) -> bool:
    parts = [
        "[^/]+" if part.startswith("{") else re.escape(part)
        for part in pattern.removeprefix("/api/v1/").split("/")
    ]
    return re.fullmatch("/".join(parts), path) is not None


def calls() -> set[tuple[str, str]]:
    from sessions_app.api import api

    return {
        (method.upper(), path)
        for path, methods in api.get_openapi_schema()["paths"].items()
        for method in methods
    }


@pytest.mark.parametrize(("method", "path"), curls())
def test_request_of_the_api_page_is_a_call_of_the_api(method, path):
    matching = [one for one in calls() if one[0] == method and is_path(path, one[1])]

    assert len(matching) == 1


def test_api_page_shows_every_call():
    missing = [
        (method, pattern)
        for method, pattern in calls()
        if not any(m == method and is_path(path, pattern) for m, path in curls())
    ]

    # The one call that is the same for both kinds of document.
    assert missing == [("PUT", "/api/v1/projects/{project}/config")]


def test_bodies_of_the_api_page_are_taken():
    from sessions_app.api import schemas

    text = (DOCS / "api.md").read_text().replace("'\"'$DIGEST'\"'", '"0"')
    bodies = [json.loads(found) for found in re.findall(r"-d '(\{.*\})'", text)]
    inputs = [
        getattr(schemas, name)
        for name in ("SessionIn", "TaskIn", "DecisionIn", "SessionChange", "ConfigIn")
    ]

    assert len(bodies) == len(inputs)
    for body, schema in zip(bodies, inputs, strict=True):
        schema.model_validate(body)


def rows(name: str, head: str) -> list[list[str]]:
    """Return the body rows of the table whose head begins so."""
    text = (DOCS / name).read_text().partition(f"\n| {head} |")[2]
    lines = text.split("\n\n")[0].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_terminal_page_tells_every_option_of_run_agent():
    from django.core.management import load_command_class
    from django.core.management.base import BaseCommand

    parser = load_command_class("penguin_web", "run_agent").create_parser("", "")
    django = BaseCommand().create_parser("", "")
    known = {option for action in parser._actions for option in action.option_strings}
    known -= {option for action in django._actions for option in action.option_strings}

    told = {option for row in rows("cli.md", "option") for option in row[0].split(", ")}
    assert {option.strip("`") for option in told} == known


def test_terminal_page_tells_the_modes_and_levels():
    from sessions_app.models import ApprovalMode
    from sessions_app.runtime.sessions import LEVELS

    told = {row[0].strip("`"): row[2] for row in rows("cli.md", "option")}

    assert re.findall(r"`([\w-]+)`", told["--approve"]) == ApprovalMode.values
    assert re.findall(r"`(\w+)`", told["--thinking"]) == list(LEVELS)
