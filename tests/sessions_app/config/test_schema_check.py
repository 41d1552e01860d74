"""The JSON Schema of the documents, and the words it is explained with."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from sessions_app.config.schema_check import did_you_mean, load_schema

KEYS = ["system_prompt", "max_turns", "timeoutMs", "maxOutputLength", "compaction"]


def closed_mappings(schema: dict[str, Any], path: str) -> Iterator[tuple[str, Any]]:
    for key, part in schema.get("properties", {}).items():
        yield f"{path}.{key}", part
        yield from closed_mappings(part, f"{path}.{key}")
        if "items" in part:
            yield from closed_mappings(part["items"], f"{path}.{key}[]")


def test_schema_is_valid_itself() -> None:
    Draft202012Validator.check_schema(load_schema())


def test_every_key_says_what_it_is_for() -> None:
    for name, definition in load_schema()["$defs"].items():
        for path, part in closed_mappings(definition, name):
            if not path.endswith("mcpServers[].name"):
                assert part.get("description"), path


def test_every_document_part_refuses_unknown_keys() -> None:
    for name, definition in load_schema()["$defs"].items():
        assert definition["additionalProperties"] is False, name
        for path, part in closed_mappings(definition, name):
            if "properties" in part:
                assert part["additionalProperties"] is False, path


def one_edit_typos(word: str) -> Iterator[str]:
    for at in range(len(word)):
        yield word[:at] + word[at + 1 :]
        yield word[:at] + "x" + word[at:]
        yield word[:at] + "x" + word[at + 1 :]
        yield word[:at] + word[at : at + 2][::-1] + word[at + 2 :]


@pytest.mark.parametrize("word", KEYS)
def test_nearly_every_one_edit_typo_is_understood(word: str) -> None:
    typos = list(one_edit_typos(word))

    understood = [typo for typo in typos if did_you_mean(typo, KEYS) == word]

    assert len(understood) >= 0.9 * len(typos)


def test_far_word_is_not_guessed() -> None:
    assert did_you_mean("colour", KEYS) is None
