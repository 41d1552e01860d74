"""What a session is made of: the model's address and key."""

from __future__ import annotations

import pytest

from sessions_app.config.project_config import ModelEntry
from sessions_app.runtime.assembly import api_key, model_spec


def entry(provider: str, base_url: str | None = None) -> ModelEntry:
    return ModelEntry(provider=provider, model_id="m", base_url=base_url)


@pytest.fixture
def keys(settings):
    settings.PROVIDER_KEYS = {"openai": "sk-o", "anthropic": "sk-a", "my_lab": "sk-l"}
    settings.PROVIDER_BASE_URLS = {"openai": "", "anthropic": "http://127.0.0.1:9"}


@pytest.mark.parametrize(
    ("provider", "key"), [("openai", "sk-o"), ("anthropic", "sk-a"), ("demo", None)]
)
def test_a_provider_gets_the_key_of_its_name(keys, provider, key):
    assert api_key(entry(provider)) == key


def test_a_provider_of_another_name_gets_its_own_key(keys):
    assert api_key(entry("my-lab", "https://models.example.org/v1")) == "sk-l"


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
def test_a_document_cannot_send_a_known_provider_s_key_elsewhere(keys, provider):
    assert api_key(entry(provider, "https://elsewhere.example.org")) is None


def test_the_operator_s_address_holds_where_the_document_names_none(keys):
    assert model_spec(entry("anthropic")).base_url == "http://127.0.0.1:9"
    assert model_spec(entry("openai")).base_url is None
