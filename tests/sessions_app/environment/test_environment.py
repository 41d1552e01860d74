"""What an Environment offers, and the rules for making one."""

import asyncio
import logging

import pytest

from sessions_app.environment import (
    ConfigError,
    Environment,
    ToolDefinition,
    ToolResult,
    default_tool_definitions,
    implemented_tools,
    register_tool,
)
from tests.sessions_app.environment.calls import call, run
from traces_app.omnimessage import StopReason


def definition(name: str, **more) -> ToolDefinition:
    entry = {"name": name, "description": "d", "parameters": {"type": "object"}}
    return ToolDefinition.from_config({**entry, **more})


def names(environment: Environment) -> list[str]:
    return [tool["name"] for tool in environment.tool_list()]


def test_model_sees_name_description_and_parameters_only(environment):
    for tool in environment.tool_list():
        assert tool.keys() == {"name", "description", "parameters"}
        assert tool["parameters"]["type"] == "object"


@pytest.mark.parametrize(
    ("is_vision", "offered", "left_out"),
    [(True, "read_image", "describe_image"), (False, "describe_image", "read_image")],
)
def test_image_tool_follows_the_model(make_environment, is_vision, offered, left_out):
    environment = make_environment(model_is_vision=is_vision)

    assert offered in names(environment)
    assert left_out not in names(environment)
    assert environment.permission_of(offered) == "r"
    assert environment.permission_of(left_out) is None


async def test_tool_of_the_other_models_is_unknown(make_environment):
    environment = make_environment(model_is_vision=False)

    called = await call(environment, "read_image", {"source": "a.png"})

    assert "unknown tool 'read_image'" in called.output


def test_permission_is_that_of_the_definition(make_environment):
    environment = make_environment([definition("exec_command", permission="rw")])

    assert environment.permission_of("exec_command") == "rw"
    assert environment.permission_of("read_file") is None


def test_permission_that_is_not_declared_is_none(make_environment):
    environment = make_environment([definition("exec_command")])

    assert environment.permission_of("exec_command") is None


def test_duplicate_names_are_refused(workspace):
    with pytest.raises(ConfigError, match="exec_command") as caught:
        Environment(workspace, [definition("exec_command")] * 2)

    assert caught.value.field == "name"


async def test_name_that_nothing_implements_is_not_offered(make_environment, caplog):
    with caplog.at_level(logging.WARNING):
        environment = make_environment([definition("teleport"), *some()])

    called = await call(environment, "teleport", {})

    assert names(environment) == ["exec_command"]
    assert "teleport" in caplog.text
    assert called.stop_reason is StopReason.FAILED


def some() -> list[ToolDefinition]:
    return [default_tool_definitions()[0]]


async def test_no_tools_at_all_is_a_valid_toolset(make_environment):
    environment = make_environment([])

    called = await call(environment, "exec_command", {"cmd": "true"})

    assert environment.tool_list() == []
    assert "there are none" in called.output


async def test_custom_tool_is_configured_like_a_builtin(make_environment):
    class Shout:
        def __init__(self, definition):
            self.name = definition.name
            self.suffix = "!" * definition.max_output_length

        async def execute(self, args, ctx):
            yield args["text"].upper()
            yield ToolResult(note=self.suffix)

    register_tool("shout", Shout)
    environment = make_environment([definition("shout", maxOutputLength=3)])

    called = await call(environment, "shout", {"text": "hey"})

    assert "shout" in implemented_tools()
    assert called.output == "HEY\n!!!"


def test_builtin_cannot_be_replaced():
    with pytest.raises(ValueError, match="exec_command"):
        register_tool("exec_command", lambda definition: None)


def test_six_tools_are_built_in():
    assert implemented_tools()[:6] == [d.name for d in default_tool_definitions()]


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("run_subagent", {"prompt": "do it"}),
        ("input_subagent", {"subagent_id": "subagent-1"}),
    ],
)
async def test_missing_partner_is_told_plainly(environment, name, arguments):
    called = await call(environment, name, arguments)

    assert called.stop_reason is StopReason.FAILED
    assert "this environment has no partner" in called.output


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ('{"cmd": "ls"}', "."),
        ('{"cmd": "ls", "workdir": ""}', "."),
        ('{"cmd": "ls", "workdir": "sub/../other"}', "other"),
        ('{"cmd": "ls", "workdir": "/etc/"}', "/etc"),
    ],
)
def test_directory_of_a_command_is_absolute(
    environment, workspace, arguments, expected
):
    found = environment.workdir_of("exec_command", arguments)

    assert found == str(workspace / expected)


@pytest.mark.parametrize("arguments", ["", "{bad", "[]", '{"cmd": "", "workdir": 5}'])
def test_unusable_arguments_name_no_directory(environment, arguments):
    assert environment.workdir_of("exec_command", arguments) is None


def test_other_tools_have_no_directory(environment):
    assert environment.workdir_of("input_command", "{}") is None


async def test_directory_told_is_the_one_it_runs_in(environment, workspace):
    (workspace / "sub").mkdir()
    told = environment.workdir_of("exec_command", '{"workdir": "./sub/"}')

    called = await run(environment, "pwd", workdir="./sub/")

    assert called.output == f"{told}\n"


async def test_relative_workspace_is_made_absolute(workspace, monkeypatch):
    monkeypatch.chdir(workspace.parent)
    environment = Environment(workspace.name, some())

    called = await run(environment, "pwd")
    await environment.aclose()

    assert called.output == f"{workspace}\n"


def test_one_environment_needs_no_loop_to_be_made_and_closed(workspace):
    environment = Environment(workspace, some())

    asyncio.run(environment.aclose())
