"""The agent document: what it means, and what is refused where."""

from __future__ import annotations

import pytest

from sessions_app.config.agent_config import BUILTIN_TOOLS, AgentConfig
from sessions_app.config.documents import DocumentError, default_document
from sessions_app.config.tool_definition import (
    ConfigError,
    ToolDefinition,
    default_tool_definitions,
)
from sessions_app.config.yaml_positions import Problem

ENTRY = """\
system_prompt: Work.
tools:
  builtin:
    - name: exec_command
      description: Run a command.
      permission: rw
      parameters: {type: object}
"""


def names(config: AgentConfig) -> list[str]:
    return [tool.name for tool in config.tools]


def problems_of(text: str) -> list[Problem]:
    with pytest.raises(DocumentError) as caught:
        AgentConfig.from_yaml(text)
    return list(caught.value.problems)


def only_problem(text: str) -> Problem:
    problems = problems_of(text)

    assert len(problems) == 1
    return problems[0]


@pytest.mark.parametrize(
    "tools", ["", "tools:\n", "tools: {builtin: null}\n", "tools: {mcpServers: []}\n"]
)
def test_toolset_left_out_is_the_default_six(tools: str) -> None:
    config = AgentConfig.from_yaml("system_prompt: Work.\n" + tools)

    assert set(names(config)) == BUILTIN_TOOLS
    assert list(config.tools) == default_tool_definitions()
    assert config.has_default_tools


def test_written_toolset_replaces_the_default_wholesale() -> None:
    config = AgentConfig.from_yaml(ENTRY)

    assert names(config) == ["exec_command"]
    assert not config.has_default_tools


def test_empty_toolset_means_no_tools() -> None:
    config = AgentConfig.from_yaml("system_prompt: Work.\ntools: {builtin: []}\n")

    assert names(config) == []


def test_kept_entry_inherits_nothing_from_the_default_of_its_name() -> None:
    tool = AgentConfig.from_yaml(ENTRY).tools[0]

    assert (tool.timeout_ms, tool.max_output_length) == (120_000, 16_000)
    assert tool.description == "Run a command."


def test_every_default_definition_survives_a_round_trip() -> None:
    for definition in default_tool_definitions():
        assert ToolDefinition.from_config(definition.to_config()) == definition


def test_mcp_servers_are_kept_and_give_no_tools() -> None:
    text = (
        "system_prompt: Work.\n"
        "tools:\n"
        "  mcpServers:\n"
        "    - {name: files, config: {command: mcp-files, args: [-v]}}\n"
    )

    config = AgentConfig.from_yaml(text)

    assert config.mcp_servers == (
        {"name": "files", "config": {"command": "mcp-files", "args": ["-v"]}},
    )
    assert set(names(config)) == BUILTIN_TOOLS


def test_every_option_arrives() -> None:
    config = AgentConfig.from_yaml(
        "system_prompt: Work.\n"
        "max_turns: 5\n"
        "model: {max_tokens: 100, thinking_level: high, timeoutMs: 2500}\n"
        "compaction: {max_context_length: 900, max_session_turns: 9, prompt: Sum up.}\n"
        "env: {TZ: UTC}\n"
    )

    assert config.max_turns == 5
    assert (config.model.max_tokens, config.model.thinking_level) == (100, "high")
    assert config.model.idle_timeout_s == 2.5
    assert config.compaction.max_context_length == 900
    assert config.compaction.max_session_turns == 9
    assert (config.compaction.mode, config.compaction.prompt) == ("summary", "Sum up.")
    assert config.env == {"TZ": "UTC"}


@pytest.mark.parametrize(("timeout", "idle_s"), [("null", 300.0), ("0", 86_400.0)])
def test_request_timeout_has_a_default_and_can_be_lifted(
    timeout: str, idle_s: float
) -> None:
    text = f"system_prompt: Work.\nmodel: {{timeoutMs: {timeout}}}\n"

    assert AgentConfig.from_yaml(text).model.idle_timeout_s == idle_s


def test_default_document_is_sound() -> None:
    config = AgentConfig.from_yaml(default_document("agent"))

    assert config.max_turns == -1
    assert config.has_default_tools


@pytest.mark.parametrize(
    ("line", "place", "words"),
    [
        ("      timeoutMs: '120000'", (8, 18, "timeoutMs"), "remove the quotes"),
        ("      timeoutMs: true", (8, 18, "timeoutMs"), "boolean true"),
        ("      timeoutMs: 1.5", (8, 18, "timeoutMs"), "number 1.5"),
        ("      timeoutMs: .nan", (8, 18, "timeoutMs"), "not a finite number"),
        ("      timeoutMs: 86400001", (8, 18, "timeoutMs"), "at most 86400000"),
        ("      maxOutputLength: no", (8, 24, "maxOutputLength"), "boolean false"),
        ("      forModel: vison", (8, 17, "forModel"), "did you mean vision?"),
        ("      timeout_ms: 5", (8, 7, "timeout_ms"), "did you mean timeoutMs?"),
        ("      colour: red", (8, 7, "colour"), "unknown key"),
    ],
)
def test_wrong_field_of_a_tool_has_path_and_place(
    line: str, place: tuple[int, int, str], words: str
) -> None:
    problem = only_problem(ENTRY + line + "\n")

    found_place = (problem.line, problem.column, problem.path)
    assert found_place == (*place[:2], f"tools.builtin[0].{place[2]}")
    assert words in problem.message


@pytest.mark.parametrize("field", ["name", "description", "parameters"])
def test_missing_field_of_a_tool_is_named(field: str) -> None:
    values = {"name": "exec_command", "description": "Run.", "parameters": "{}"}
    del values[field]
    lines = [f"{key}: {value}" for key, value in values.items()]
    text = "system_prompt: Work.\ntools:\n  builtin:\n    - " + "\n      ".join(lines)

    problem = only_problem(text)

    assert problem.path == f"tools.builtin[0].{field}"
    assert (problem.line, problem.column) == (4, 7)
    assert problem.message == "is missing"


def test_tool_name_used_twice_is_refused_at_the_second() -> None:
    second = ENTRY.split("builtin:\n")[1]

    problem = only_problem(ENTRY + second)

    assert (problem.line, problem.path) == (8, "tools.builtin[1].name")
    assert "the first is on line 4" in problem.message


def test_tool_nobody_implements_is_refused() -> None:
    problem = only_problem(ENTRY.replace("exec_command", "exec_comand"))

    assert problem.path == "tools.builtin[0].name"
    assert "did you mean exec_command?" in problem.message


def test_registered_tool_may_be_declared() -> None:
    text = ENTRY.replace("exec_command", "my_tool")

    config = AgentConfig.from_yaml(text, implemented={"my_tool"})

    assert names(config) == ["my_tool"]


@pytest.mark.parametrize(
    "name", ["exec_command", "input_command", "run_subagent", "input_subagent"]
)
def test_tool_that_can_write_cannot_be_declared_read_only(name: str) -> None:
    text = ENTRY.replace("exec_command", name).replace(
        "permission: rw", "permission: r"
    )

    problem = only_problem(text)

    assert (problem.path, problem.line) == ("tools.builtin[0].permission", 6)


def test_parameters_that_are_no_json_schema_are_refused() -> None:
    problem = only_problem(ENTRY.replace("{type: object}", "{type: objekt}"))

    assert (problem.path, problem.line) == ("tools.builtin[0].parameters", 7)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("max_turns: 3\n", (1, 1, "system_prompt")),
        ("system_prompt: ''\n", (1, 16, "system_prompt")),
        ("system_prompt: 5\n", (1, 16, "system_prompt")),
        ("system_prompt: x\nmax_turns: -2\n", (2, 12, "max_turns")),
        ("system_prompt: x\nmax_turns: '3'\n", (2, 12, "max_turns")),
        ("system_prompt: x\nmodel: {api_key: sk}\n", (2, 9, "model.api_key")),
        ("system_prompt: x\nmodel: {thinking_level: hi}\n", (2, 25, "model.thinking_level")),
        ("system_prompt: x\nenv: {PORT: 80}\n", (2, 13, "env.PORT")),
        ("system_prompt: x\nenv: {A B: x}\n", (2, 7, "env.A B")),
        ("system_prompt: x\ntools: []\n", (2, 8, "tools")),
        ("system_prompt: x\ntools: {mcpServers: [{}]}\n", (2, 22, "tools.mcpServers[0].name")),
        ("- system_prompt\n", (1, 1, "(document)")),
    ],
)  # fmt: skip
def test_wrong_value_has_path_and_place(text: str, place: tuple[int, int, str]) -> None:
    problem = only_problem(text)

    assert (problem.line, problem.column, problem.path) == place


def test_all_problems_are_told_in_the_order_of_the_text() -> None:
    problems = problems_of("max_turn: 1\nsystem_prompt: 5\nenv: 3\n")

    assert [problem.line for problem in problems] == [1, 2, 3]


def test_document_error_is_a_config_error_that_shows_its_problems() -> None:
    with pytest.raises(ConfigError, match=r"1:1: system_prompt: is missing"):
        AgentConfig.from_yaml("max_turns: 3\n")


def test_lenient_load_leaves_the_faulty_entry_out_with_a_warning() -> None:
    second = (
        "    - name: gone_tool\n      description: x\n      parameters: {}\n"
        "    - name: read_image\n      description: See.\n      parameters: {}\n"
        "    - name: input_command\n      description: No schema.\n"
        "new_key: 1\n"
    )

    config = AgentConfig.load(ENTRY + second, lenient=True)

    assert names(config) == ["exec_command", "read_image"]
    assert [warning.path for warning in config.warnings] == [
        "tools.builtin[3].parameters",
        "new_key",
        "tools.builtin[1].name",
    ]


def test_lenient_load_never_falls_back_to_more_tools() -> None:
    config = AgentConfig.load(ENTRY.replace("exec_command", "gone"), lenient=True)

    assert names(config) == []


def test_lenient_load_still_refuses_what_has_no_harmless_reading() -> None:
    with pytest.raises(DocumentError):
        AgentConfig.load("system_prompt: x\nmax_turns: many\n", lenient=True)
