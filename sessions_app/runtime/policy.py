"""What an approval mode says about a call: allow, deny, or ask a person."""

from __future__ import annotations

from typing import Literal

from sessions_app.config.documents import DocumentError
from sessions_app.environment.arguments import ArgumentsError, parse_arguments
from sessions_app.environment.images import ImageError
from sessions_app.environment.web_address import WebAddress
from sessions_app.models import ApprovalMode, Session
from sessions_app.runtime import configs

Verdict = Literal["allow", "deny", "ask"]
ASKS_THE_WEB = frozenset({"read_image", "describe_image"})


def verdict(
    mode: str | None, permission: str | None, *, outside: str | None = None
) -> Verdict:
    """Decide under the mode; an unknown mode or a missing row asks for everything.

    `outside` is the host of `outside_host`: to read from it is to tell it something.
    """
    match mode:
        case ApprovalMode.ALLOW_ALL:
            return "allow"
        case ApprovalMode.DENY_ALL:
            return "deny"
        case ApprovalMode.READ_ONLY if permission == "r" and outside is None:
            return "allow"
        case _:
            return "ask"


def outside_host(session: Session, name: str, arguments: str) -> str | None:
    """Return the host a call would ask for an image though the project has not named it.

    None for every call that asks nobody, or fails before it does. Synchronous.
    """
    if name not in ASKS_THE_WEB:
        return None
    try:
        source = parse_arguments(arguments).get("source")
        address = WebAddress.of(source) if isinstance(source, str) else None
    except (ArgumentsError, ImageError):
        return None
    if address is None:
        return None
    try:
        allowed = configs.current(session.project)[0].allowed_image_hosts
    except DocumentError:
        allowed = ()
    return None if address.is_among(allowed) else address.host


def asked_because(
    session: Session | None, permission: str | None, *, outside: str | None = None
) -> str:
    """Say in words why a person is asked."""
    if session is None:
        return "the session's mode could not be read"
    mode = session.approval_mode
    why = f"mode {mode}"
    if mode == ApprovalMode.READ_ONLY:
        kind = (
            "this tool changes things" if permission == "rw" else "this tool is unknown"
        )
        if permission == "r" and outside is not None:
            kind = f"this asks {outside}, a host the project does not allow"
        why += f", and {kind}"
    if session.mode_set_by and session.mode_set_at:
        why += f", set by {session.mode_set_by}"
    return why
