"""Where the core meets Django: the only place that changes a live session.

Views, API, consumers and commands call these functions and nothing below them. The
async ones belong to the server's event loop; `snapshot`, `pending_requests`,
`trace_events`, `item_text` and `ensure_default_project` are synchronous and read the
database. What cannot be done raises `Refusal`.
"""

from sessions_app.runtime.actions import (
    create_session,
    decide,
    kill_process,
    processes,
    recall_queued,
    rename,
    retry_now,
    save_draft,
    send_input,
    set_mode,
    start_task,
)
from sessions_app.runtime.attaching import attach_images, detach_image
from sessions_app.runtime.compaction import compact
from sessions_app.runtime.configs import ensure_default_project
from sessions_app.runtime.endings import archive, delete_session, interrupt
from sessions_app.runtime.expiry import expires_at
from sessions_app.runtime.feed import item_kind, pending_requests
from sessions_app.runtime.frames import Span
from sessions_app.runtime.images import (
    IMAGE_LIMITS,
    Upload,
    check_upload,
    in_composer,
    sees_images,
)
from sessions_app.runtime.owner import AlreadyServed, ServerLock
from sessions_app.runtime.refusal import Refusal, conflict, invalid, not_found
from sessions_app.runtime.sessions import Wish
from sessions_app.runtime.snapshot import (
    ItemState,
    Snapshot,
    item_text,
    process_list,
    snapshot,
)
from sessions_app.runtime.stream import ServerSentEvent
from sessions_app.runtime.supervisor import start_supervisor, stop_supervisor
from sessions_app.runtime.watching import (
    call_events,
    newest_events,
    outcome,
    stream_events,
    trace_events,
    trouble,
    viewer,
    watch_project,
    window_start,
)

__all__ = [
    "AlreadyServed",
    "IMAGE_LIMITS",
    "ItemState",
    "Refusal",
    "ServerLock",
    "ServerSentEvent",
    "Snapshot",
    "Span",
    "Upload",
    "Wish",
    "archive",
    "attach_images",
    "call_events",
    "check_upload",
    "compact",
    "conflict",
    "create_session",
    "decide",
    "delete_session",
    "detach_image",
    "ensure_default_project",
    "expires_at",
    "in_composer",
    "interrupt",
    "invalid",
    "item_kind",
    "item_text",
    "kill_process",
    "newest_events",
    "not_found",
    "outcome",
    "pending_requests",
    "process_list",
    "processes",
    "recall_queued",
    "rename",
    "retry_now",
    "send_input",
    "save_draft",
    "sees_images",
    "set_mode",
    "snapshot",
    "start_supervisor",
    "start_task",
    "stop_supervisor",
    "stream_events",
    "trace_events",
    "trouble",
    "viewer",
    "watch_project",
    "window_start",
]
