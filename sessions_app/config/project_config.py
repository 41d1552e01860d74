"""The project document: models on offer, approval policy, what is allowed where."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Self

from sessions_app.config.agent_config import BUILTIN_TOOLS, AgentConfig
from sessions_app.config.documents import (
    DocumentError,
    default_document,
    entries_at,
    mapping_at,
    read_document,
)
from sessions_app.config.schema_check import did_you_mean, kind_of
from sessions_app.config.yaml_positions import Document, Path, Problem, parse

__all__ = [
    "AgentConfig",
    "DocumentError",
    "ModelEntry",
    "Problem",
    "ProjectConfig",
    "check_document",
    "default_document",
]

Protocol = Literal["openai", "anthropic", "demo"]
KNOWN_PROVIDERS = ("demo", "openai", "anthropic")
_DEFAULT_WINDOW = 128_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelEntry:
    """A model on offer."""

    provider: str
    model_id: str
    vision: bool = False
    context_window: int = _DEFAULT_WINDOW  # tokens
    max_tokens: int | None = None
    base_url: str | None = None
    protocol: Protocol = "openai"
    price: Mapping[str, float] = field(default_factory=dict)  # USD per million tokens

    @property
    def name(self) -> str:
        """Return `PROVIDER/ID`."""
        return f"{self.provider}/{self.model_id}"


FACTORY_MODELS = (
    ModelEntry(
        provider="demo",
        model_id="demo",
        vision=True,
        context_window=200_000,
        protocol="demo",
    ),
    ModelEntry(
        provider="demo", model_id="demo-text", context_window=200_000, protocol="demo"
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A policy entry; `match` is a pattern of the command with * and ?."""

    tool: str
    action: Literal["allow", "deny", "ask"]
    match: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalPolicy:
    """How calls are decided where a session says nothing else."""

    mode: str = "always-ask"
    expiry_s: int | None = None  # None: a request waits for ever
    rules: Sequence[Rule] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectConfig:
    """A project document in force."""

    default_agent: str = "default_agent"
    models: Sequence[ModelEntry] = FACTORY_MODELS
    default_model: str = "demo/demo"
    vision_model: str | None = None
    approval: ApprovalPolicy = field(default_factory=ApprovalPolicy)
    allowed_image_hosts: Sequence[str] = ()
    workspace_roots: Sequence[str] = ()
    sandbox_mode: str = "none"
    retention_days: int | None = None  # None: kept for ever
    budget_usd: float | None = None  # of a session with its subagents; None: none
    warnings: tuple[Problem, ...] = ()  # what a lenient load left out, and why

    @property
    def prices(self) -> dict[str, Mapping[str, float]]:
        """Return what models cost, by `PROVIDER/ID`, as far as it is known."""
        return {entry.name: entry.price for entry in self.models if entry.price}

    def model(self, name: str) -> ModelEntry | None:
        """Return the model `PROVIDER/ID`, or None when it is not on offer."""
        return next((entry for entry in self.models if entry.name == name), None)

    @classmethod
    def from_yaml(cls, text: str) -> Self:
        """Build it from a document without a fault; raises `DocumentError`."""
        return cls.load(text)

    @classmethod
    def load(cls, text: str, *, lenient: bool = False) -> Self:
        """Build it; `lenient` leaves faulty models out, with a warning each.

        Raises `DocumentError` where leaving out does not help.
        """
        document, warnings = read_document(text, "project", lenient=lenient)
        models, problems = _models(document)
        config = cls(
            **_given(document, "default_agent", "default_model", "vision_model"),
            models=models,
            approval=_approval(document),
            allowed_image_hosts=mapping_at(document, "images").get("allowed_hosts")
            or (),
            workspace_roots=document.value.get("workspace_roots") or (),
            sandbox_mode=mapping_at(document, "sandbox").get("mode") or "none",
            retention_days=mapping_at(document, "retention").get("days"),
            budget_usd=mapping_at(document, "budget").get("session_usd"),
            warnings=(*warnings, *problems),
        )
        problems += _reference_problems(document, config)
        problems += _rule_problems(document)
        if problems and not lenient:
            raise DocumentError(problems)
        return config


def check_document(
    text: str, *, implemented: Collection[str] = BUILTIN_TOOLS
) -> list[Problem]:
    """Return what is wrong with a document of either kind, told apart by its keys."""
    document = parse(text)
    if document.problems:
        return document.problems
    kind = kind_of(document.value)
    if kind is None:
        message = (
            "neither an agent document (system_prompt, tools, …) "
            "nor a project document (default_agent, models, …)"
        )
        return [document.problem((), message)]
    try:
        if kind == "agent":
            AgentConfig.from_yaml(text, implemented=implemented)
        else:
            ProjectConfig.from_yaml(text)
    except DocumentError as error:
        return list(error.problems)
    return []


def _given(document: Document, *keys: str) -> dict[str, Any]:
    return {key: document.value[key] for key in keys if key in document.value}


def _approval(document: Document) -> ApprovalPolicy:
    value = mapping_at(document, "approval")
    rules = tuple(Rule(**rule) for rule in value.get("rules") or ())
    return ApprovalPolicy(
        mode=value.get("mode", "always-ask"),
        expiry_s=value.get("expiry_s"),
        rules=rules,
    )


def _models(document: Document) -> tuple[list[ModelEntry], list[Problem]]:
    """Return the sound entries and those of the factory, and what is wrong."""
    models: dict[str, ModelEntry] = {}
    problems: list[Problem] = []
    for path, value in entries_at(document, ("models",)):
        entry = _entry(value)
        problem = _entry_problem(document, path, entry)
        if problem is None and entry.name in models:
            message = f"duplicate model {entry.name}"
            problem = document.problem((*path, "model_id"), message)
        if problem is None:
            models[entry.name] = entry
        else:
            problems.append(problem)
    for factory in FACTORY_MODELS:
        models.setdefault(factory.name, factory)
    return list(models.values()), problems


def _entry(value: Mapping[str, Any]) -> ModelEntry:
    provider = value["provider"]
    natural: Protocol = provider if provider in ("demo", "anthropic") else "openai"
    given = {key: part for key, part in value.items() if part is not None}
    return ModelEntry(**{"protocol": natural, **given})


def _entry_problem(document: Document, path: Path, entry: ModelEntry) -> Problem | None:
    if entry.provider not in KNOWN_PROVIDERS and entry.base_url is None:
        message = f"{entry.provider} needs a base_url"
        meant = did_you_mean(entry.provider, KNOWN_PROVIDERS)
        message += f"; did you mean {meant}?" if meant else ""
        return document.problem((*path, "provider"), message)
    factory = [model.name for model in FACTORY_MODELS]
    if entry.provider == "demo" and entry.name not in factory:
        message = f"the demo provider has only {' and '.join(factory)}"
        return document.problem((*path, "model_id"), message)
    if entry.provider == "demo" and entry.protocol != "demo":
        message = "the demo provider has no protocol"
        return document.problem((*path, "protocol"), message)
    return None


def _reference_problems(document: Document, config: ProjectConfig) -> list[Problem]:
    """Return the names in the document that lead nowhere."""
    problems = []
    for key in ("default_model", "vision_model"):
        name = document.value.get(key)
        entry = config.model(name) if name is not None else None
        if name is not None and entry is None:
            meant = did_you_mean(name, [model.name for model in config.models])
            message = f"{name} is not among the models"
            message += f"; did you mean {meant}?" if meant else ""
            problems.append(document.problem((key,), message))
        elif key == "vision_model" and entry is not None and not entry.vision:
            problems.append(document.problem((key,), f"{name} has no vision"))
    return problems


def _rule_problems(document: Document) -> list[Problem]:
    """Refuse rules as long as nothing applies them: one that denies would lie."""
    if not mapping_at(document, "approval").get("rules"):
        return []
    message = "rules are not applied by this release; leave the list empty"
    return [document.problem(("approval", "rules"), message)]
