"""The digest: independent of spelling, dependent on everything that runs."""

from __future__ import annotations

import hashlib
import json

import pytest

from sessions_app.engine import arguments_sha256


def test_digest_is_that_of_the_canonical_json():
    text = '["exec_command","/tmp/ä",{"a":1,"cmd":"echo ü"}]'

    digest = arguments_sha256("exec_command", "/tmp/ä", '{"cmd": "echo ü", "a": 1}')

    assert digest == hashlib.sha256(text.encode()).hexdigest()


def test_spacing_and_key_order_do_not_matter():
    one = arguments_sha256("t", None, '{"a": 1, "b": [1, 2]}')

    assert one == arguments_sha256("t", None, '{"b":[1,2],"a":1}')


@pytest.mark.parametrize(
    "other",
    [
        ("u", None, '{"a": 1}'),
        ("t", "/", '{"a": 1}'),
        ("t", None, '{"a": 2}'),
        ("t", None, '{"a": 1.0}'),
        ("t", None, '{"a": "1"}'),
        ("t", None, '{"a": 1'),
    ],
)
def test_everything_that_runs_matters(other):
    assert arguments_sha256(*other) != arguments_sha256("t", None, '{"a": 1}')


@pytest.mark.parametrize(
    "broken",
    ["", "{", '{"a": 1, "a": 2}', '{"a": NaN}', "[" * 100_000, '{"a": "\\ud800"}'],
    ids=["empty", "cut", "twice", "nan", "deep", "surrogate"],
)
def test_any_text_has_a_digest(broken):
    assert len(arguments_sha256("t", None, broken)) == 64


def test_text_that_does_not_parse_counts_as_it_stands():
    text = json.dumps(["t", None, "not json"], separators=(",", ":"))

    assert arguments_sha256("t", None, "not json") == (
        hashlib.sha256(text.encode()).hexdigest()
    )


@pytest.mark.parametrize(
    ("one", "other"), [("\\u0000", "\u2400"), ("\\ud800", "\ufffd")]
)
def test_characters_that_cannot_be_stored_are_told_from_their_stand_ins(one, other):
    digests = {
        arguments_sha256("exec_command", "/w", f'{{"cmd": "echo {text}"}}')
        for text in (one, other)
    }

    assert len(digests) == 2
