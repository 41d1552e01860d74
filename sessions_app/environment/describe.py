"""What describe_image needs from outside: a model that sees, and what it used."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import asdict, dataclass
from typing import Any, Protocol

from traces_app.omnimessage.payloads import Usage

# In `details` of an output: what a model that a tool asked has used. The engine counts
# it for the session.
MODEL_USE = "model_use"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelUse:
    """The tokens of one request that a tool made."""

    model: str  # PROVIDER/ID
    usage: Usage

    def to_details(self) -> dict[str, Any]:
        """Return what stands under `MODEL_USE`."""
        return {"model": self.model, **asdict(self.usage)}


class Describe(Protocol):
    """Asks a model that sees about one image (a data: URL)."""

    def __call__(self, image: str, prompt: str) -> AsyncGenerator[str | ModelUse, None]:
        """Yield the answer in parts, and what it used; raises `ToolError`."""
        ...
