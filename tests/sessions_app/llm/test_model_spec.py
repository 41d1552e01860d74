from __future__ import annotations

import pytest

from sessions_app.llm.model_spec import ModelSpec, split_model_name


def spec(**facts):
    known = {"provider": "openai", "model_id": "m", "is_vision": True}
    return ModelSpec(**{**known, "context_window": 1, **facts})


def test_model_name_splits_at_the_first_slash():
    assert split_model_name("local/org/model:8b") == ("local", "org/model:8b")
    assert spec(provider="local", model_id="org/model").name == "local/org/model"


@pytest.mark.parametrize("name", ["", "gpt", "/gpt", "openai/"])
def test_what_is_no_model_name_is_refused_with_the_remedy(name):
    with pytest.raises(ValueError, match="write PROVIDER/ID"):
        split_model_name(name)


def test_only_official_addresses_need_a_key():
    assert spec().needs_key
    assert not spec(base_url="http://127.0.0.1:8080/v1").needs_key
    assert not spec(protocol="demo").needs_key


def test_hint_names_the_variable_of_the_provider():
    assert "OPENAI_API_KEY" in spec().key_hint
    assert "MY_LAB_API_KEY" in spec(provider="my-lab").key_hint
