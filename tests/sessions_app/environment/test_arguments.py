"""Which tool is meant, and whether its arguments can be used."""

import pytest

from sessions_app.environment import ToolDefinition
from sessions_app.environment.arguments import (
    ArgumentsCheck,
    ArgumentsError,
    optional_number,
    optional_text,
    parse_arguments,
    text_argument,
)
from tests.sessions_app.environment.calls import call, run
from traces_app.omnimessage import StopReason


@pytest.mark.parametrize("name", ["read_file", "__init__", "constructor", ""])
async def test_unknown_tool_is_named_with_the_known_ones(environment, name):
    called = await call(environment, name, {})

    assert [frame.event_type for frame in called.frames] == ["start", "delta", "stop"]
    assert called.stop_reason is StopReason.FAILED
    assert repr(name) in called.output
    assert "exec_command, input_command" in called.output


async def test_unknown_tool_comes_before_broken_arguments(environment):
    called = await call(environment, "nothing", "{broken")

    assert "unknown tool" in called.output


@pytest.mark.parametrize("text", ["{bad", "{'a': 1}", '{"cmd": "ec', '{"a": NaN}'])
async def test_broken_json_is_to_be_issued_again(environment, text):
    called = await call(environment, "exec_command", text)

    assert called.stop_reason is StopReason.FAILED
    assert "again" in called.output
    assert called.details["running"] is False


@pytest.mark.parametrize("text", ["{bad", "{'a': 1}", '{"cmd": "ec'])
def test_broken_json_is_called_so(text):
    with pytest.raises(ArgumentsError, match="not valid JSON"):
        parse_arguments(text)


@pytest.mark.parametrize("text", ["", "  \n"])
async def test_empty_arguments_are_called_empty(environment, text):
    called = await call(environment, "exec_command", text)

    assert "arguments are empty" in called.output
    assert called.stop_reason is StopReason.FAILED


@pytest.mark.parametrize("text", ["[]", '"ls"', "5", "null", "true"])
def test_arguments_must_be_an_object(text):
    with pytest.raises(ArgumentsError, match="must be a JSON object"):
        parse_arguments(text)


def test_duplicate_keys_are_refused():
    with pytest.raises(ArgumentsError, match="duplicate key 'cmd'"):
        parse_arguments('{"cmd": "ls", "cmd": "rm -rf ."}')


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a": ' + "9" * 5000 + "}"])
def test_json_that_breaks_the_parser_is_refused(text):
    with pytest.raises(ArgumentsError):
        parse_arguments(text)


async def test_missing_argument_is_named(environment):
    called = await call(environment, "exec_command", {})

    assert called.output == "[tool error] invalid arguments: cmd is required"


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("exec_command", {"cmd": 5}, "cmd: expected string, found number 5"),
        ("exec_command", {"cmd": None}, "cmd: expected string, found null"),
        (
            "exec_command",
            {"cmd": "ls", "yield_time_ms": "300"},
            'yield_time_ms: expected number, found string "300"',
        ),
        (
            "exec_command",
            {"cmd": "ls", "yield_time_ms": True},
            "yield_time_ms: expected number, found boolean true",
        ),
        (
            "input_command",
            {"process_id": "proc-1", "chars": 5},
            "chars: expected string, found number 5",
        ),
        ("input_command", {}, "process_id is required"),
        ("input_command", {"process_id": 5}, "process_id: expected string"),
        ("run_subagent", {"prompt": "x", "agent_id": 7}, "agent_id: expected string"),
        ("run_subagent", {"prompt": "  "}, "prompt: must not be empty"),
        ("run_subagent", {}, "prompt is required"),
    ],
)
async def test_wrong_argument_is_named_with_what_was_expected(
    environment, name, arguments, expected
):
    called = await call(environment, name, arguments)

    assert called.stop_reason is StopReason.FAILED
    assert expected in called.output


async def test_unknown_argument_is_ignored(environment):
    called = await run(environment, "echo hi", risk="LOW", requires_approval=False)

    assert called.output == "hi\n"


def check(schema, arguments):
    ArgumentsCheck(schema).check(arguments)


def test_unknown_argument_is_refused_where_the_schema_forbids_it():
    schema = {"type": "object", "additionalProperties": False}

    with pytest.raises(ArgumentsError, match="'extra' was unexpected"):
        check(schema, {"extra": 1})


def test_nested_place_is_named():
    schema = {"properties": {"a": {"items": {"required": ["b"]}}}}

    with pytest.raises(ArgumentsError, match=r"a\[1\]\.b is required"):
        check(schema, {"a": [{"b": 1}, {}]})


def test_several_faults_are_told_together():
    schema = {"properties": {"a": {"type": "string"}, "b": {"type": "integer"}}}

    with pytest.raises(ArgumentsError, match="a: expected string.*; b: expected int"):
        check(schema, {"a": 1, "b": "x"})


def test_many_faults_are_counted():
    schema = {"items": {}, "patternProperties": {"": {"type": "string"}}}

    with pytest.raises(ArgumentsError, match="and 2 more"):
        check(schema, {f"key{n}": n for n in range(7)})


def test_long_values_are_shortened():
    with pytest.raises(ArgumentsError) as caught:
        check({"properties": {"a": {"type": "number"}}}, {"a": "x" * 500})

    assert len(str(caught.value)) < 200


def test_reference_never_loads_anything():
    schema = {"properties": {"a": {"$ref": "https://127.0.0.1:1/schema.json"}}}

    with pytest.raises(ArgumentsError, match="cannot be checked"):
        check(schema, {"a": 1})


async def test_schema_comes_from_the_definition_alone(make_environment):
    lax = ToolDefinition.from_config(
        {"name": "exec_command", "description": "d", "parameters": {"type": "object"}}
    )
    environment = make_environment([lax])

    missing = await call(environment, "exec_command", {})
    wrong = await call(environment, "exec_command", {"cmd": ["ls"]})

    assert "cmd is required" in missing.output
    assert "cmd: expected string, found array" in wrong.output


def test_typed_readers_take_what_is_left_out():
    assert optional_text({}, "a") == ""
    assert optional_number({}, "a") is None
    assert optional_number({"a": 0.5}, "a") == 0.5
    with pytest.raises(ArgumentsError, match="a is required"):
        text_argument({}, "a")
    with pytest.raises(ArgumentsError, match="a: expected number"):
        optional_number({"a": False}, "a")
