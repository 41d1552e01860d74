"""Outputs in the product's own words: what a denied call tells the model."""

from __future__ import annotations

import pytest

from sessions_app.engine import denied_output
from traces_app.omnimessage import StopReason, tool_call
from traces_app.omnimessage import payloads as p


@pytest.mark.parametrize(
    ("source", "extra", "text"),
    [
        ("user", {}, "Tool call denied by user."),
        ("mode", {}, "Tool call denied by user."),
        ("policy", {}, "Tool call denied by user."),
        (
            "user",
            {"reason": "use rm -i"},
            "Tool call denied by user.\nReason: use rm -i",
        ),
        (
            "rule",
            {"rule": "no network"},
            "Tool call denied by user.\nReason: rule no network",
        ),
        (
            "rule",
            {"rule": "no network", "reason": "offline week"},
            "Tool call denied by user.\nReason: rule no network: offline week",
        ),
        (
            "expiry",
            {},
            "Tool call denied by user.\nReason: nobody decided in time; "
            "this is not a technical fault, do not try another way.",
        ),
        ("interrupt", {}, "[interrupted: tool aborted by user]"),
    ],
)
def test_first_line_of_a_denied_output_follows_from_the_source(source, extra, text):
    event = p.ApprovalDecision(
        decision="deny",
        tool_call_id="c1",
        source=source,
        via="auto",
        arguments_sha256="0",
        **extra,
    )

    output = denied_output(tool_call("a", "{}", "c1"), event).payload

    assert output.output == text
    assert output.stop_reason is StopReason.ABORTED


@pytest.mark.parametrize("source", ["restart", "stream"])
def test_call_denied_by_a_cut_says_that_it_did_not_run(source):
    event = p.ApprovalDecision(
        decision="deny",
        tool_call_id="c1",
        source=source,
        via="auto",
        arguments_sha256="0",
    )

    output = denied_output(tool_call("a", "{}", "c1"), event).payload

    assert output.output.startswith("[not run: ")
