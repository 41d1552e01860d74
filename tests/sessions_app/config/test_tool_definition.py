"""The checks of one entry of `tools.builtin`, and the six default tools."""

import math

import pytest

from sessions_app.config import (
    ConfigError,
    ToolDefinition,
    default_tool_definitions,
)
from sessions_app.config.tool_definition import MAX_TIMEOUT_MS


def entry(**changes):
    complete = {
        "name": "exec_command",
        "description": "Run a command.",
        "parameters": {"type": "object", "properties": {"cmd": {"type": "string"}}},
        "permission": "rw",
        "forModel": "vision",
        "timeoutMs": 5000,
        "maxOutputLength": 100,
    }
    changed = {**complete, **changes}
    return {key: value for key, value in changed.items() if value is not ...}


def refused(**changes) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        ToolDefinition.from_config(entry(**changes))
    return caught.value


def test_complete_entry_is_taken():
    definition = ToolDefinition.from_config(entry())

    assert definition.name == "exec_command"
    assert definition.permission == "rw"
    assert definition.for_model == "vision"
    assert definition.timeout_ms == 5000
    assert definition.max_output_length == 100
    assert definition.to_config() == entry()


@pytest.mark.parametrize("absent", [..., None])
def test_limits_that_are_left_out_have_the_general_defaults(absent):
    definition = ToolDefinition.from_config(
        entry(
            name="input_command",
            timeoutMs=absent,
            maxOutputLength=absent,
            permission=absent,
            forModel=absent,
        )
    )

    assert definition.timeout_ms == 120_000
    assert definition.max_output_length == 16_000
    assert definition.permission is None
    assert definition.for_model is None
    assert "permission" not in definition.to_config()


@pytest.mark.parametrize("field", ["name", "description", "parameters"])
@pytest.mark.parametrize("absent", [..., None])
def test_field_that_must_be_there_is_named(field, absent):
    error = refused(**{field: absent})

    assert error.field == field
    assert "missing" in str(error)


@pytest.mark.parametrize("value", ["abc", "120000", True, False, [], {}, math.nan])
@pytest.mark.parametrize("field", ["timeoutMs", "maxOutputLength"])
def test_limit_that_is_no_number_is_refused(field, value):
    error = refused(**{field: value})

    assert error.field == field
    assert field in str(error)


@pytest.mark.parametrize("value", [math.inf, -math.inf, 1.5])
@pytest.mark.parametrize("field", ["timeoutMs", "maxOutputLength"])
def test_limit_that_is_no_whole_number_is_refused(field, value):
    assert refused(**{field: value}).field == field


def test_timeout_of_a_day_is_the_longest():
    longest = ToolDefinition.from_config(entry(timeoutMs=MAX_TIMEOUT_MS))

    assert longest.timeout_ms == 24 * 60 * 60 * 1000
    for value in (MAX_TIMEOUT_MS + 1, 1e300, 10**400):
        error = refused(timeoutMs=value)
        assert error.field == "timeoutMs"
        assert str(MAX_TIMEOUT_MS) in str(error)


@pytest.mark.parametrize("value", [0, -1, 5.0])
def test_disabled_and_whole_limits_are_taken(value):
    definition = ToolDefinition.from_config(
        entry(timeoutMs=value, maxOutputLength=value)
    )

    assert definition.timeout_ms == value
    assert isinstance(definition.max_output_length, int)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", ""),
        ("name", "with space"),
        ("name", "dot.name"),
        ("name", "x" * 65),
        ("name", "name\n"),
        ("name", 5),
        ("description", ""),
        ("description", "  "),
        ("description", ["text"]),
        ("permission", "w"),
        ("permission", True),
        ("permission", ["rw"]),
        ("forModel", "text"),
        ("forModel", 1),
        ("parameters", []),
        ("parameters", "object"),
        ("parameters", {"type": "string"}),
        ("parameters", {"type": "object", "properties": []}),
        ("parameters", {"type": "object", "properties": {"a": {"type": "text"}}}),
        ("parameters", {"properties": {"a": {"$ref": "https://example.org/s"}}}),
        ("parameters", {"properties": {"a": {"default": math.nan}}}),
        ("parameters", {"properties": {"a": {"default": {1: "number as a key"}}}}),
        ("parameters", {"properties": {"a": {"default": {"a", "set"}}}}),
    ],
)
def test_wrong_value_names_its_field(field, value):
    error = refused(**{field: value})

    assert error.field == field
    assert error.path == field
    assert str(error).startswith(f"{field}: ")


def test_unknown_field_is_named_with_the_known_ones():
    error = refused(timeout=5)

    assert error.field == "timeout"
    assert "timeoutMs" in str(error)


@pytest.mark.parametrize("value", [None, [], "exec_command", 5])
def test_entry_must_be_a_mapping(value):
    with pytest.raises(ConfigError, match="mapping"):
        ToolDefinition.from_config(value)


def test_path_of_the_entry_stands_before_the_field():
    with pytest.raises(ConfigError) as caught:
        ToolDefinition.from_config(entry(timeoutMs="x"), path="tools.builtin[2]")

    assert caught.value.path == "tools.builtin[2].timeoutMs"
    assert caught.value.field == "timeoutMs"
    assert caught.value.message == "must be a number, found string 'x'"


@pytest.mark.parametrize(
    "name", ["exec_command", "input_command", "run_subagent", "input_subagent"]
)
def test_tool_that_writes_cannot_be_declared_read_only(name):
    assert refused(name=name, permission="r").field == "permission"


def test_other_tools_may_be_read_only():
    definition = ToolDefinition.from_config(entry(name="my_tool", permission="r"))

    assert definition.permission == "r"


def test_definition_does_not_share_the_documents_objects():
    source = entry()
    definition = ToolDefinition.from_config(source)
    source["parameters"]["properties"]["cmd"]["type"] = "integer"
    definition.to_config()["parameters"].clear()

    assert definition.parameters == entry()["parameters"]


@pytest.mark.parametrize(
    ("name", "permission", "timeout_ms", "for_model"),
    [
        ("exec_command", "rw", 120_000, None),
        ("input_command", "rw", 130_000, None),
        ("run_subagent", "rw", 600_000, None),
        ("input_subagent", "rw", 600_000, None),
        ("read_image", "r", 60_000, "vision"),
        ("describe_image", "r", 90_000, "text-only"),
    ],
)
def test_default_tools_have_their_limits(name, permission, timeout_ms, for_model):
    definition = {d.name: d for d in default_tool_definitions()}[name]

    assert definition.permission == permission
    assert definition.timeout_ms == timeout_ms
    assert definition.for_model == for_model
    assert definition.max_output_length == 16_000
    assert len(definition.description) > 100
    for parameter in definition.parameters["properties"].values():
        assert parameter["description"]


def test_default_tools_are_complete_entries():
    for definition in default_tool_definitions():
        assert ToolDefinition.from_config(definition.to_config()) == definition


def test_default_list_is_the_callers_own():
    default_tool_definitions().clear()

    assert len(default_tool_definitions()) == 6


def test_arguments_of_the_default_tools_are_those_of_the_tools():
    parameters = {
        d.name: (list(d.parameters["properties"]), d.parameters["required"])
        for d in default_tool_definitions()
    }

    assert parameters == {
        "exec_command": (["cmd", "workdir", "yield_time_ms"], ["cmd"]),
        "input_command": (["process_id", "chars", "yield_time_ms"], ["process_id"]),
        "run_subagent": (
            ["prompt", "agent_id", "model_id", "provider", "yield_time_ms"],
            ["prompt"],
        ),
        "input_subagent": (["subagent_id", "prompt", "yield_time_ms"], ["subagent_id"]),
        "read_image": (["source"], ["source"]),
        "describe_image": (["source", "prompt"], ["source"]),
    }
