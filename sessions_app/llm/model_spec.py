"""Which model is meant: the plain facts a client is made from."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

Protocol = Literal["openai", "anthropic", "demo"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSpec:
    """One model of one provider, as a project offers it."""

    provider: str
    model_id: str
    is_vision: bool
    context_window: int  # tokens
    max_tokens: int | None = None  # cap of one answer; None: the provider's own
    base_url: str | None = None  # None: the official address of the provider
    protocol: Protocol = "openai"

    @property
    def name(self) -> str:
        """Return `PROVIDER/ID`, as people and documents write it."""
        return f"{self.provider}/{self.model_id}"

    @property
    def needs_key(self) -> bool:
        """Return whether asking without a key is pointless; a local server needs none."""
        return self.protocol != "demo" and self.base_url is None

    @property
    def key_hint(self) -> str:
        """Return what to do about a missing or rejected key."""
        name = re.sub(r"[^A-Z0-9]", "_", self.provider.upper())
        return f"set {name}_API_KEY in the server's environment and restart it"


def split_model_name(name: str) -> tuple[str, str]:
    """Split `PROVIDER/ID` at the first slash; raises `ValueError` naming the remedy."""
    provider, slash, model_id = name.partition("/")
    if not (provider and slash and model_id):
        raise ValueError(f"{name!r} is not a model name: write PROVIDER/ID")
    return provider, model_id
