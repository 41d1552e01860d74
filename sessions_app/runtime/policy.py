"""What an approval mode says about a call: allow, deny, or ask a person."""

from __future__ import annotations

from typing import Literal

from sessions_app.models import ApprovalMode, Session

Verdict = Literal["allow", "deny", "ask"]


def verdict(mode: str | None, permission: str | None) -> Verdict:
    """Decide under the mode; an unknown mode or a missing row asks for everything."""
    match mode:
        case ApprovalMode.ALLOW_ALL:
            return "allow"
        case ApprovalMode.DENY_ALL:
            return "deny"
        case ApprovalMode.READ_ONLY if permission == "r":
            return "allow"
        case _:
            return "ask"


def asked_because(session: Session | None, permission: str | None) -> str:
    """Say in words why a person is asked."""
    if session is None:
        return "the session's mode could not be read"
    mode = session.approval_mode
    why = f"mode {mode}"
    if mode == ApprovalMode.READ_ONLY:
        kind = "changes things" if permission == "rw" else "is unknown"
        why += f", and this tool {kind}"
    if session.mode_set_by and session.mode_set_at:
        why += f", set by {session.mode_set_by}"
    return why
