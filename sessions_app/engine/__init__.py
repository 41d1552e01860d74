"""The agent loop, framework-free: model, decisions, tools, and the record of it all."""

from sessions_app.engine.agent_loop import AgentLoop
from sessions_app.engine.agent_session import AgentSession
from sessions_app.engine.child_sessions import ChildAgent, ChildSessions
from sessions_app.engine.decision import Approve, Decision, Recorder, RecordError
from sessions_app.engine.describer import Describer
from sessions_app.engine.digest import arguments_sha256
from sessions_app.engine.history import History
from sessions_app.engine.options import LoopOptions
from sessions_app.engine.outputs import denied_output
from sessions_app.engine.settlement import restart_denial, settlement
from sessions_app.engine.tool_calls import Decide

__all__ = [
    "AgentLoop",
    "AgentSession",
    "Approve",
    "ChildAgent",
    "ChildSessions",
    "Decide",
    "Decision",
    "Describer",
    "History",
    "LoopOptions",
    "RecordError",
    "Recorder",
    "arguments_sha256",
    "denied_output",
    "restart_denial",
    "settlement",
]
