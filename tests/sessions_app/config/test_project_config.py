"""The project document: what it means, and what is refused where."""

from __future__ import annotations

import pytest

from sessions_app.config.documents import DocumentError, default_document
from sessions_app.config.project_config import ProjectConfig, check_document

LOCAL = """\
models:
  - provider: local
    model_id: qwen/coder
    base_url: http://127.0.0.1:8080/v1
    vision: true
    context_window: 32768
    max_tokens: 4096
    price: {input: 0.5, output: 1}
"""


def test_empty_mapping_is_the_factory_setting() -> None:
    config = ProjectConfig.from_yaml("{}\n")

    assert config.approval.mode == "always-ask"
    assert config.default_model == "demo/demo"
    assert [model.name for model in config.models] == ["demo/demo", "demo/demo-text"]


def test_default_document_is_the_factory_setting() -> None:
    config = ProjectConfig.from_yaml(default_document("project"))

    assert config.default_agent == "default_agent"
    assert config.approval.mode == "always-ask"
    demo, text = config.models
    assert (demo.name, demo.vision, demo.context_window) == ("demo/demo", True, 200_000)
    assert (text.name, text.vision, text.protocol) == ("demo/demo-text", False, "demo")


def test_model_of_a_local_server_arrives_beside_the_factory_models() -> None:
    config = ProjectConfig.from_yaml(LOCAL)

    model = config.model("local/qwen/coder")
    assert model is not None
    assert (model.provider, model.model_id) == ("local", "qwen/coder")
    assert (model.vision, model.context_window, model.max_tokens) == (True, 32768, 4096)
    assert (model.protocol, dict(model.price)) == (
        "openai",
        {"input": 0.5, "output": 1},
    )
    assert config.model("demo/demo") is not None
    assert config.model("demo/none") is None


@pytest.mark.parametrize(
    ("lines", "protocol"),
    [
        ("provider: anthropic", "anthropic"),
        ("provider: openai", "openai"),
        ("provider: other\n    base_url: https://x/v1", "openai"),
        (
            "provider: other\n    base_url: https://x\n    protocol: anthropic",
            "anthropic",
        ),
    ],
)
def test_protocol_follows_the_provider_unless_written(
    lines: str, protocol: str
) -> None:
    config = ProjectConfig.from_yaml(f"models:\n  - model_id: m\n    {lines}\n")

    assert config.models[0].protocol == protocol


def test_every_option_arrives() -> None:
    config = ProjectConfig.from_yaml(
        LOCAL + "default_agent: coder\n"
        "default_model: local/qwen/coder\n"
        "vision_model: demo/demo\n"
        "approval: {mode: read-only, expiry_s: 60, rules: []}\n"
        "images: {allowed_hosts: [img.example]}\n"
        "workspace_roots: [/srv/code]\n"
        "sandbox: {mode: none}\n"
        "retention: {days: 30}\n"
        "budget: {session_usd: 2.5}\n"
    )

    assert (config.default_agent, config.default_model) == ("coder", "local/qwen/coder")
    assert config.vision_model == "demo/demo"
    assert (config.approval.mode, config.approval.expiry_s) == ("read-only", 60)
    assert list(config.allowed_image_hosts) == ["img.example"]
    assert list(config.workspace_roots) == ["/srv/code"]
    assert config.retention_days == 30
    assert config.budget_usd == 2.5


def test_prices_are_told_by_the_names_of_the_models() -> None:
    text = (
        "models:\n"
        "  - {provider: openai, model_id: x, price: {input: 1, output: 2.5}}\n"
        "  - {provider: openai, model_id: y}\n"
    )

    assert ProjectConfig.from_yaml(text).prices == {
        "openai/x": {"input": 1, "output": 2.5}
    }


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        ("approval: {mode: alow-all}\n", (1, 18, "approval.mode"), "did you mean allow-all?"),
        ("approval: {mode: null}\n", (1, 18, "approval.mode"), "found null"),
        ("approval: {expiry_s: '60'}\n", (1, 22, "approval.expiry_s"), "remove the quotes"),
        ("aproval: {}\n", (1, 1, "aproval"), "did you mean approval?"),
        ("default_model: demo\n", (1, 16, "default_model"), "PROVIDER/ID"),
        ("default_model: demo/dmo\n", (1, 16, "default_model"), "not among the models"),
        ("vision_model: demo/demo-text\n", (1, 15, "vision_model"), "no vision"),
        ("default_agent: ../x\n", (1, 16, "default_agent"), "must match"),
        ("workspace_roots: [code]\n", (1, 19, "workspace_roots[0]"), "absolute path"),
        ("models: [{provider: openai}]\n", (1, 10, "models[0].model_id"), "is missing"),
        ("models: [{provider: opnai, model_id: x}]\n", (1, 21, "models[0].provider"), "did you mean openai?"),
        ("models: [{provider: mine, model_id: x}]\n", (1, 21, "models[0].provider"), "needs a base_url"),
        ("models: [{provider: demo, model_id: x}]\n", (1, 37, "models[0].model_id"), "has only"),
        ("models: [{provider: a/b, model_id: x}]\n", (1, 21, "models[0].provider"), "must match"),
        (
            "models: [{provider: demo, model_id: demo}, {provider: demo, model_id: demo}]\n",
            (1, 71, "models[1].model_id"),
            "duplicate model",
        ),
        (
            "models: [{provider: openai, model_id: x, api_key: sk-1}]\n",
            (1, 42, "models[0].api_key"),
            "credentials are never part",
        ),
        (
            "models: [{provider: x, model_id: x, base_url: 'http://u:p@h/'}]\n",
            (1, 47, "models[0].base_url"),
            "without credentials",
        ),
        (
            "approval:\n  rules: [{tool: exec_command, action: deny}]\n",
            (2, 10, "approval.rules"),
            "not applied",
        ),
        ("sandbox: {mode: bwrap}\n", (1, 17, "sandbox.mode"), "must be one of none"),
        ("budget: {session_usd: 0}\n", (1, 23, "budget.session_usd"), "more than 0"),
        ("budget: {session_usd: '1'}\n", (1, 23, "budget.session_usd"), "remove the quotes"),
        ("models: [{provider: openai, model_id: x, price: {inptu: 1}}]\n", (1, 50, "models[0].price.inptu"), "did you mean input?"),
        ("models: [{provider: openai, model_id: x, price: {input: -1}}]\n", (1, 57, "models[0].price.input"), "at least 0"),
        ("retention: {days: 0}\n", (1, 19, "retention.days"), "at least 1"),
        ("[]\n", (1, 1, "(document)"), "expected a mapping"),
    ],
)  # fmt: skip
def test_wrong_value_has_path_and_place(
    text: str, place: tuple[int, int, str], words: str
) -> None:
    with pytest.raises(DocumentError) as caught:
        ProjectConfig.from_yaml(text)

    (problem,) = caught.value.problems
    assert (problem.line, problem.column, problem.path) == place
    assert words in problem.message


def test_secret_in_an_unknown_key_is_not_repeated() -> None:
    with pytest.raises(DocumentError) as caught:
        ProjectConfig.from_yaml(
            "models: [{provider: openai, model_id: x, api_key: sk-1}]\n"
        )

    assert "sk-1" not in str(caught.value)


def test_lenient_load_leaves_the_faulty_model_out_with_a_warning() -> None:
    config = ProjectConfig.load(
        LOCAL + "  - provider: gone\n    model_id: x\n  - provider: openai\n",
        lenient=True,
    )

    names = [model.name for model in config.models]
    assert names == ["local/qwen/coder", "demo/demo", "demo/demo-text"]
    assert [warning.path for warning in config.warnings] == [
        "models[2].model_id",
        "models[1].provider",
    ]


def test_document_is_told_apart_by_its_keys() -> None:
    assert check_document(default_document("agent")) == []
    assert check_document(default_document("project")) == []
    assert check_document("tools: {}\n")[0].path == "system_prompt"
    assert check_document("models: 3\n")[0].path == "models"


@pytest.mark.parametrize("text", ["colour: red\n", "- a\n", "5\n"])
def test_document_of_neither_kind_is_a_problem(text: str) -> None:
    (problem,) = check_document(text)

    assert problem.message.startswith("neither an agent document")
