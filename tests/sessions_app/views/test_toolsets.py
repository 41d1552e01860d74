"""The settings page tells which tools an agent really has, and what is left out."""

from __future__ import annotations

import re

import pytest
from asgiref.sync import sync_to_async

from sessions_app.config.project_config import ProjectConfig
from sessions_app.models import Agent, ConfigVersion
from sessions_app.views.toolsets import toolset_of

pytestmark = pytest.mark.django_db(transaction=True)

COMMAND = """\
    - name: exec_command
      description: Run a command.
      parameters: {type: object}
"""


def in_force(project, text: str) -> Agent:
    """Put a document in force as an older release may have left it."""
    agent = project.agents.get()
    ConfigVersion.objects.create(project=project, agent=agent, number=2, yaml=text)
    return agent


def toolset(project, tools: str):
    text = f"system_prompt: Work.\ntools:\n  builtin:\n{tools}"
    return toolset_of(in_force(project, text), ProjectConfig())


def test_default_set_tells_what_the_default_model_gets(project):
    found = toolset_of(project.agents.get(), ProjectConfig())

    assert found.is_default
    assert {row.name: row.is_offered for row in found.rows} == {
        "exec_command": True,
        "input_command": True,
        "run_subagent": True,
        "input_subagent": True,
        "read_image": True,
        "describe_image": False,
    }
    first = found.rows[0]
    assert (first.permission, first.timeout, first.cap, first.offered_to) == (
        "rw",
        "2:00 min",
        "16,000 characters",
        "every model",
    )


def test_text_model_gets_the_other_image_tool(project):
    config = ProjectConfig(default_model="demo/demo-text")

    found = toolset_of(project.agents.get(), config)

    offered = {row.name for row in found.rows if row.is_offered}
    assert "describe_image" in offered and "read_image" not in offered


def test_limits_that_are_off_are_told_so(project):
    off = "      timeoutMs: 0\n      maxOutputLength: -1\n"

    (row,) = toolset(project, COMMAND + off).rows

    assert (row.timeout, row.cap) == ("no limit", "no cut")
    assert row.permission == "none: always asked in read-only"


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ("    - {name: gone_tool, description: x, parameters: {}}\n", "gone_tool"),
        ("    - {name: read_image, description: x}\n", "parameters"),
        (COMMAND, "duplicate tool name exec_command"),
        (
            "    - {name: input_command, description: x, parameters: {}, permission: r}\n",
            "cannot be declared r",
        ),
        (
            "    - {name: read_image, description: x, parameters: {}, timeoutMs: '5'}\n",
            "timeoutMs",
        ),
    ],
)
def test_faulty_entry_of_an_old_document_is_left_out_and_named(project, entry, words):
    found = toolset(project, COMMAND + entry)

    assert [row.name for row in found.rows] == ["exec_command"]
    (problem,) = found.left_out
    assert words in str(problem)
    assert problem.line > 3


def test_mcp_servers_are_named_and_give_no_tools(project):
    text = (
        "system_prompt: Work.\n"
        "tools: {builtin: [], mcpServers: [{name: files, config: {command: x}}]}\n"
    )

    found = toolset_of(in_force(project, text), ProjectConfig())

    assert found.rows == [] and found.mcp_servers == ["files"]


def test_document_that_cannot_be_used_says_why(project):
    found = toolset_of(in_force(project, "max_turns: 3\n"), ProjectConfig())

    assert [problem.path for problem in found.unusable] == ["system_prompt"]


async def test_page_shows_it_all(supervisor, client, project):
    text = (
        "system_prompt: Work.\n"
        "tools:\n"
        "  builtin:\n"
        f"{COMMAND}"
        "    - {name: gone_tool, description: x, parameters: {}}\n"
        "  mcpServers: [{name: '<b>files</b>', config: {}}]\n"
    )
    await sync_to_async(in_force)(project, text)

    answer = await client.get("/p/default/settings/")

    page = re.sub(r"\s+", " ", answer.content.decode())
    assert "Tools of default_agent" in page
    assert re.search(r"Left out: \d+:\d+: tools.builtin\[1\].name", page)
    assert "&lt;b&gt;files&lt;/b&gt;" in page
    assert "not connected" in page


async def test_page_of_an_unusable_agent_still_opens(supervisor, client, project):
    await sync_to_async(in_force)(project, "max_turns: 3\n")

    answer = await client.get("/p/default/settings/")

    assert answer.status_code == 200
    assert "cannot be used" in answer.content.decode()
