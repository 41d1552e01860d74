from __future__ import annotations

import pytest

from sessions_app.llm.client import (
    CredentialsError,
    InvalidRequestError,
    LLMError,
    MalformedStreamError,
    RequestTimeoutError,
)
from tests.fakes import (
    Answer,
    Bytes,
    Call,
    Cut,
    Pause,
    Say,
    Status,
    free_port,
)


@pytest.mark.parametrize(
    ("code", "error"),
    [
        (400, InvalidRequestError),
        (401, CredentialsError),
        (403, CredentialsError),
        (404, InvalidRequestError),
        (413, InvalidRequestError),
        (422, InvalidRequestError),
        (429, LLMError),
        (500, LLMError),
        (503, LLMError),
        (529, LLMError),
    ],
)
async def test_status_of_the_provider_decides_the_error_and_its_words_are_told(
    provider, code, error
):
    body = {"error": {"code": code, "message": "Loading model", "type": "odd_error"}}
    provider.server.add(Status(code, body))

    with pytest.raises(LLMError) as caught:
        await provider.ask()

    assert type(caught.value) is error
    assert f"answered {code}: Loading model (odd_error)" in str(caught.value)
    assert len(provider.server.requests) == 1


async def test_rejected_key_says_what_to_set_and_does_not_repeat_the_key(provider):
    said = {"error": {"message": "Incorrect API key provided: key-1."}}
    provider.server.add(Status(401, said))

    with pytest.raises(CredentialsError) as caught:
        await provider.ask()

    assert "_API_KEY" in str(caught.value)
    assert "key-1" not in str(caught.value)


@pytest.mark.parametrize(
    ("key", "said", "told"),
    [
        ("sk-abcdefgh1234", "bad key:sk-abcdefgh1234x", "bad key:[key]x"),
        ("k", "key k is of no known kind", "key [key] is of no known kind"),
        ("none", "nonexistent model, key none", "nonexistent model, key [key]"),
    ],
)
async def test_key_is_hidden_and_a_short_one_leaves_the_words_whole(
    open_provider, key, said, told
):
    async with open_provider(api_key=key) as provider:
        provider.server.add(Status(500, {"error": {"message": said}}))

        with pytest.raises(LLMError) as caught:
            await provider.ask()

    assert str(caught.value).endswith(f" answered 500: {told}")


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("<html>Bad Gateway</html>", "<html>Bad Gateway</html>"),
        ({"error": "model not found"}, "model not found"),
        ({"detail": "Not Found"}, "Not Found"),
        ("x" * 5000, "x" * 1000 + "…"),
    ],
)
async def test_provider_may_word_its_errors_as_it_likes(provider, body, words):
    provider.server.add(Status(502, body))

    with pytest.raises(LLMError) as caught:
        await provider.ask()

    assert str(caught.value).endswith(f"answered 502: {words}")


@pytest.mark.parametrize(
    "error",
    [
        {"code": 400, "type": "exceed_context_size_error", "message": "too big"},
        {"code": "context_length_exceeded", "message": "too big"},
        {"type": "invalid_request_error", "message": "prompt is too long: 9 > 8"},
    ],
)
async def test_conversation_beyond_the_window_is_told_apart(provider, error):
    provider.server.add(Status(400, {"error": error}))

    with pytest.raises(InvalidRequestError) as caught:
        await provider.ask()

    assert caught.value.is_too_long


async def test_refused_connection_is_named(open_provider):
    url = f"http://user:secret@127.0.0.1:{free_port()}"
    async with open_provider(base_url=url) as provider:
        with pytest.raises(LLMError) as caught:
            await provider.ask()

    assert "ECONNREFUSED (Connection refused)" in str(caught.value)
    assert "secret" not in str(caught.value)
    assert caught.value.is_retryable


async def test_unknown_host_is_named(open_provider):
    async with open_provider(base_url="http://nowhere.invalid") as provider:
        with pytest.raises(LLMError, match=r"http://nowhere\.invalid: .+"):
            await provider.ask()


@pytest.mark.parametrize(
    "url", ["localhost:8000/v1", "ftp://host/", "http://", "http://host:port/"]
)
async def test_base_url_that_is_no_address_is_not_tried_again(open_provider, url):
    async with open_provider(base_url=url) as provider:
        with pytest.raises(InvalidRequestError, match="base_url"):
            await provider.ask()


async def test_stream_that_ends_early_is_malformed(provider):
    provider.server.add(Bytes())

    with pytest.raises(MalformedStreamError, match="ended without"):
        await provider.ask()


async def test_connection_that_drops_is_malformed_and_what_came_was_shown(provider):
    provider.server.add(Answer(Say("half an"), Call("ls"), Say("answer"), Cut()))
    items = []

    with pytest.raises(MalformedStreamError, match="broke off"):
        await provider.ask(into=items)

    deltas = [getattr(m.payload, "text", "") for m in items if m.kind == "partial_text"]
    assert "".join(deltas) == "half ananswer"


async def test_event_that_is_no_json_is_malformed(provider):
    provider.server.add(Bytes(b'event: message_start\ndata: {"a": \n\n'))

    with pytest.raises(MalformedStreamError, match="no valid JSON"):
        await provider.ask()


async def test_event_that_is_no_object_is_passed_over(provider):
    provider.server.add(Answer(b"event: ping\ndata: [1]\n\n", Say("fine")))

    [text] = await provider.answer()

    assert text.text == "fine"


async def test_silence_of_the_provider_is_a_timeout(open_provider):
    async with open_provider(idle_timeout_s=0.2) as provider:
        provider.server.add(Answer(Say("a"), Pause(30)))

        with pytest.raises(RequestTimeoutError, match=r"sent nothing for 0\.2 s"):
            await provider.ask()


async def test_server_too_busy_for_headers_is_waited_for_as_long(open_provider):
    async with open_provider(idle_timeout_s=0.2) as provider:
        provider.server.add(Answer(Say("a"), headers_after_s=30))

        with pytest.raises(RequestTimeoutError):
            await provider.ask()
