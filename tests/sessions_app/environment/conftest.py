"""Environments in an empty folder with an empty HOME, and tools made of a function."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sessions_app.environment import (
    Environment,
    ToolDefinition,
    default_tool_definitions,
    register_tool,
)
from tests.sessions_app.environment.web_server import WebServer

_numbers = itertools.count(1)


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch) -> Path:
    """A clean HOME: the profile of a login shell costs nothing."""
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    return folder


@pytest.fixture
def workspace(tmp_path) -> Path:
    folder = tmp_path / "workspace"
    folder.mkdir()
    return folder


@pytest.fixture
async def make_environment(workspace) -> AsyncIterator[Callable[..., Environment]]:
    """Make environments that are closed in the end."""
    made: list[Environment] = []

    def make(tools: list[ToolDefinition] | None = None, **more: Any) -> Environment:
        tools = default_tool_definitions() if tools is None else tools
        made.append(Environment(workspace, tools, **more))
        return made[-1]

    yield make
    await asyncio.gather(*(environment.aclose() for environment in made))


@pytest.fixture
def environment(make_environment) -> Environment:
    """The default tools."""
    return make_environment()


@pytest.fixture
def limited(make_environment) -> Callable[..., Environment]:
    """Make an Environment whose default tools have other limits."""

    def make(
        *, timeout_ms: int | None = None, max_output_length: int | None = None, **more
    ) -> Environment:
        limits = {"timeout_ms": timeout_ms, "max_output_length": max_output_length}
        given = {key: value for key, value in limits.items() if value is not None}
        tools = [replace(tool, **given) for tool in default_tool_definitions()]
        return make_environment(tools, **more)

    return make


@pytest.fixture
def scripted(make_environment) -> Callable[..., tuple[Environment, str]]:
    """Make an Environment with one tool whose `execute` is the given function."""

    def make(
        execute: Callable, *, sink=None, artifact_dir=None, **config: Any
    ) -> tuple[Environment, str]:
        name = f"scripted_{next(_numbers)}"

        class Scripted:
            def __init__(self, definition: ToolDefinition) -> None:
                self.name = definition.name

            def execute(self, args, ctx):
                return execute(args, ctx)

        register_tool(name, Scripted)
        entry = {
            "name": name,
            "description": "Does what the test says.",
            "parameters": {"type": "object"},
            "permission": "rw",
            **config,
        }
        tools = [ToolDefinition.from_config(entry)]
        return make_environment(tools, sink=sink, artifact_dir=artifact_dir), name

    return make


class RecordingSink:
    """Keeps everything an Environment tells."""

    def __init__(self) -> None:
        self.logs: dict[str, str] = {}
        self.writes: list[tuple[str, str]] = []
        self.bound: list[tuple[str, str]] = []
        self.open_lines: list[tuple[str, str]] = []
        self.changes: list[Any] = []
        self.drains = 0

    def bind(self, tool_call_id: str, item_id: str) -> None:
        self.bound.append((tool_call_id, item_id))

    def write(self, item_id: str, text: str) -> None:
        self.writes.append((item_id, text))
        self.logs[item_id] = self.logs.get(item_id, "") + text

    def open_line(self, item_id: str, text: str) -> None:
        self.open_lines.append((item_id, text))

    async def drain(self, item_id: str) -> None:
        self.drains += 1

    def process(self, change: Any) -> None:
        self.changes.append(change)


@pytest.fixture
def sink() -> RecordingSink:
    return RecordingSink()


@pytest.fixture
def web() -> Iterator[WebServer]:
    """A web server of the test's own, on loopback."""
    with WebServer() as server:
        yield server
