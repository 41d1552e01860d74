"""The tables of the README say what the code says."""

import re
from pathlib import Path

from sessions_app.environment import default_tool_definitions
from sessions_app.models import ApprovalMode, Role

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()


def rows(heading: str) -> list[list[str]]:
    """Return the body rows of the first table below a heading."""
    section = README.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [
        [cell.strip().strip("`") for cell in line.strip("|").split("|")]
        for line in lines[2:]
    ]


def test_tool_table_holds_the_default_tools():
    told = [
        (name, permission, timeout) for name, permission, timeout, _ in rows("Tools")
    ]

    assert told == [
        (tool.name, tool.permission, f"{tool.to_config()['timeoutMs'] // 1000} s")
        for tool in default_tool_definitions()
    ]


def test_mode_table_holds_the_modes_from_strict_to_permissive():
    assert [mode for mode, _ in rows("Approval modes")] == ApprovalMode.values


def test_readme_names_every_role():
    section = README.partition("## Approval modes")[2].partition("\n## ")[0].lower()

    for role in Role:
        assert role.label.lower() in " ".join(section.split())


def test_settings_table_holds_every_variable():
    example = (ROOT / ".env.example").read_text()

    assert {name for name, _, _ in rows("Settings")} == set(
        re.findall(r"^([A-Z_]+)=", example, re.MULTILINE)
    )


def test_every_command_the_readme_names_exists():
    from django.core.management import get_commands

    named = set(re.findall(r"manage\.py (\w+)", README))

    assert named <= set(get_commands())


def test_every_make_target_the_readme_names_exists():
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE))

    assert set(re.findall(r"\bmake (\w+)`", README)) <= targets


def test_every_test_that_proves_a_statement_exists():
    rows = re.findall(
        r"^\| (.+) \| `([\w/.]+)::(\w+)` \|$",
        (ROOT / "docs" / "seed.md").read_text(),
        re.MULTILINE,
    )

    missing = [
        (statement, file, name)
        for statement, file, name in rows
        if not (ROOT / "tests" / file).exists()
        or f"def {name}(" not in (ROOT / "tests" / file).read_text()
    ]
    assert missing == []
    assert len(rows) > 90


def test_every_file_the_documents_name_exists():
    for document in ("README.md", "SECURITY.md", "docs/architecture.md", "docs/cli.md"):
        text = (ROOT / document).read_text()
        links = re.findall(r"\]\(([^):#]+)\)", text)
        paths = re.findall(r"`((?:penguin_web|sessions_app|traces_app)/[\w/.]*)`", text)

        missing = [
            name
            for name in [*((Path(document).parent / link) for link in links), *paths]
            if not (ROOT / name).exists()
        ]
        assert missing == [], document
