"""check_config, export_config and import_config."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from sessions_app.config.documents import default_document
from sessions_app.models import ConfigVersion, Project
from sessions_app.runtime import configs

AGENT = "system_prompt: Work.\nmax_turns: 3\n"


def run(*arguments: str) -> tuple[str, str, int]:
    out, err, code = StringIO(), StringIO(), 0
    try:
        call_command(*arguments, stdout=out, stderr=err)
    except SystemExit as stop:
        code = int(stop.code or 0)
    return out.getvalue(), err.getvalue(), code


@pytest.fixture
def write(tmp_path: Path):
    def write(text: str | bytes, name: str = "file.yaml") -> str:
        path = tmp_path / name
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return str(path)

    return write


@pytest.mark.parametrize("text", [AGENT, default_document("project")])
def test_sound_document_of_either_kind_passes(write, text: str) -> None:
    out, err, code = run("check_config", write(text))

    assert (err, code) == ("", 0)
    assert "sound" in out


def test_problems_are_told_as_editors_understand_them(write) -> None:
    name = write("system_prompt: x\nmax_turn: 3\nmodel: 5\n")

    _, err, code = run("check_config", name)

    assert code == 1
    first, second = err.splitlines()
    assert first.startswith(f"{name}:2:1: max_turn: unknown key")
    assert second.startswith(f"{name}:3:8: model: expected a mapping")


@pytest.mark.parametrize(
    ("text", "start"),
    [
        ("a: [\n", "1:4: (document): not valid YAML"),
        ("", "1:1: (document): the document is empty"),
        (b"a: 1\nb: \xff\n", "2:4: (document): is not UTF-8"),
        ("colour: red\n", "1:1: (document): neither"),
    ],
)
def test_file_that_is_no_document_is_told_with_its_place(write, text, start) -> None:
    name = write(text)

    _, err, code = run("check_config", name)

    assert code == 1
    assert err.startswith(f"{name}:{start}")


def test_missing_file_is_named() -> None:
    with pytest.raises(CommandError, match="none.yaml"):
        call_command("check_config", "none.yaml")


@pytest.mark.django_db
def test_export_of_an_import_is_byte_identical(project: Project, write) -> None:
    text = "# mine\r\napproval: {mode:   'read-only'}  # why\r\n\r\nmodels:   []"

    _, err, code = run("import_config", "default", write(text))
    out, _, _ = run("export_config", "default")

    assert (err, code) == ("", 0)
    assert out == text


@pytest.mark.django_db
def test_agent_document_goes_to_the_default_agent(project: Project, write) -> None:
    out, _, code = run("import_config", "default", write(AGENT), "--reason", "shorter")

    assert (out.strip(), code) == ("agent default_agent of default: version 2", 0)
    version = ConfigVersion.objects.get(agent__name="default_agent", number=2)
    assert (version.yaml, version.reason) == (AGENT, "shorter")
    assert run("export_config", "default", "--agent", "default_agent")[0] == AGENT


@pytest.mark.django_db
def test_agent_that_is_named_is_made(project: Project, write) -> None:
    out, _, _ = run("import_config", "default", write(AGENT), "--agent", "coder")

    assert out.strip() == "agent coder of default: version 1"
    assert configs.document_text(project.agents.get(name="coder")) == (AGENT, 1)


@pytest.mark.django_db
def test_faulty_document_is_refused_and_nothing_is_saved(
    project: Project, write
) -> None:
    name = write("default_model: demo/none\n")

    _, err, code = run("import_config", "default", name)

    assert code == 1
    assert err.startswith(f"{name}:1:16: default_model: demo/none is not among")
    assert configs.document_text(project)[1] == 1


@pytest.mark.django_db
@pytest.mark.parametrize(
    "arguments",
    [
        ("export_config", "none"),
        ("export_config", "default", "--agent", "none"),
        ("import_config", "none", "FILE"),
        ("import_config", "default", "FILE", "--agent", "a/b"),
    ],
)
def test_unknown_name_is_an_error(project: Project, write, arguments) -> None:
    name = write(AGENT)

    with pytest.raises(CommandError):
        call_command(*(name if a == "FILE" else a for a in arguments))


@pytest.mark.django_db
def test_import_into_an_empty_database_makes_the_default_project(write) -> None:
    out, _, _ = run("import_config", "default", write(AGENT))

    assert out.strip() == "agent default_agent of default: version 2"
