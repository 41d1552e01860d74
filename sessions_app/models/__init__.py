"""The rows of the product; nothing else may be needed after `kill -9`."""

from sessions_app.models.agent import Agent
from sessions_app.models.approval import ApprovalRequest
from sessions_app.models.attached_image import AttachedImage
from sessions_app.models.config_version import ConfigVersion
from sessions_app.models.membership import Membership, Role
from sessions_app.models.output import (
    Artifact,
    CommandSession,
    OutputChunk,
    ProcessState,
)
from sessions_app.models.project import Project
from sessions_app.models.session import (
    ApprovalMode,
    Owner,
    QueuedMessage,
    Session,
    SessionStatus,
)
from sessions_app.models.subagent import SubagentSession, SubagentState
from sessions_app.models.token import ApiToken

__all__ = [
    "Agent",
    "ApiToken",
    "ApprovalMode",
    "ApprovalRequest",
    "Artifact",
    "AttachedImage",
    "CommandSession",
    "ConfigVersion",
    "Membership",
    "OutputChunk",
    "Owner",
    "ProcessState",
    "Project",
    "QueuedMessage",
    "Role",
    "Session",
    "SessionStatus",
    "SubagentSession",
    "SubagentState",
]
