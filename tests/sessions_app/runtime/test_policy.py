"""What each mode says of each kind of tool."""

import pytest

from sessions_app.models import ApprovalMode
from sessions_app.runtime.policy import verdict

READS, WRITES, UNKNOWN = "r", "rw", None


@pytest.mark.parametrize(
    ("mode", "reads", "writes", "unknown"),
    [
        ("allow-all", "allow", "allow", "allow"),
        ("deny-all", "deny", "deny", "deny"),
        ("read-only", "allow", "ask", "ask"),
        ("always-ask", "ask", "ask", "ask"),
        ("no-such-mode", "ask", "ask", "ask"),
        (None, "ask", "ask", "ask"),
    ],
)
def test_mode_decides_or_asks(mode, reads, writes, unknown):
    found = [verdict(mode, kind) for kind in (READS, WRITES, UNKNOWN)]

    assert found == [reads, writes, unknown]


def test_every_mode_is_in_the_table():
    assert set(ApprovalMode.values) == {
        "allow-all",
        "deny-all",
        "read-only",
        "always-ask",
    }


def test_reading_from_a_host_that_is_not_allowed_is_asked_for():
    assert verdict("read-only", READS, outside="example.org") == "ask"
    assert verdict("allow-all", READS, outside="example.org") == "allow"
