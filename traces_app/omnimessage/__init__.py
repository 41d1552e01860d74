"""OmniMessage: the one message format of engine, record, stream and export."""

from traces_app.omnimessage.aggregate import Aggregator
from traces_app.omnimessage.codec import CodecError
from traces_app.omnimessage.message import (
    OmniMessage,
    assistant_text,
    event,
    image_url,
    now,
    thinking,
    tool_call,
    tool_call_output,
    user_text,
)
from traces_app.omnimessage.payloads import StopReason

__all__ = [
    "Aggregator",
    "CodecError",
    "OmniMessage",
    "StopReason",
    "assistant_text",
    "event",
    "image_url",
    "now",
    "thinking",
    "tool_call",
    "tool_call_output",
    "user_text",
]
