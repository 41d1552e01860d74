"""Every error has one shape, also the framework's; a wrong body does nothing."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.django_db(transaction=True)

CREATE = "projects/default/sessions"


@pytest.fixture
async def oskar(caller, operator):
    return await caller(operator)


@pytest.mark.parametrize(
    "content_type",
    ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "", "a"],
)
async def test_body_that_is_not_sent_as_json_gets_415(
    oskar, project, error, content_type
) -> None:
    response = await oskar("POST", CREATE, "{}", content_type=content_type)

    assert response.status_code == 415
    assert error(response)["code"] == "unsupported_media_type"
    assert not await project.sessions.aexists()


async def test_json_with_a_charset_is_json(oskar, error) -> None:
    response = await oskar(
        "POST", CREATE, '{"agent": 5}', content_type="application/json; charset=utf-8"
    )

    assert response.status_code == 422


@pytest.mark.parametrize(
    "body",
    [
        "{",
        "{'a': 1}",
        '{"title": NaN}',
        '{"title": "a", "title": "b"}',
        "[" * 100_000,
        b"\xff",
        b'{"title": "\xff"}',
    ],
)
async def test_body_that_is_no_json_gets_422(oskar, project, error, body) -> None:
    response = await oskar("POST", CREATE, body)

    assert response.status_code == 422
    error(response)
    assert not await project.sessions.aexists()


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({"titel": "x"}, "titel"),
        ({"title": 5}, "title"),
        ({"title": None}, "title"),
        ({"title": "x" * 201}, "title"),
        ({"title": "a\0b"}, "title"),
        ({"approval_mode": "allow"}, "approval_mode"),
        ({"thinking_level": "huge"}, "thinking_level"),
        ([], "body"),
        ('"text"', "body"),
    ],
)
async def test_wrong_value_gets_422_with_its_path(
    oskar, project, error, body, path
) -> None:
    response = await oskar("POST", CREATE, body)

    assert response.status_code == 422
    assert [entry["path"] for entry in error(response)["details"]] == [path]
    assert not await project.sessions.aexists()


async def test_missing_body_gets_422(oskar, error) -> None:
    response = await oskar("POST", CREATE)

    assert response.status_code == 422
    error(response)


async def test_lone_surrogate_gets_422(oskar, error) -> None:
    response = await oskar("POST", CREATE, '{"title": "\\ud800"}')

    assert response.status_code == 422
    error(response)


async def test_overlong_body_gets_413(oskar, error, settings) -> None:
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 1000

    response = await oskar("POST", CREATE, {"title": "x" * 2000})

    assert response.status_code == 413
    error(response)


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "DELETE"])
async def test_unknown_address_gets_404(oskar, error, method) -> None:
    response = await oskar(method, "nothing/here")

    assert response.status_code == 404
    error(response)


async def test_address_with_a_nul_gets_404(oskar, error) -> None:
    response = await oskar("GET", "sessions/a%00b")

    assert response.status_code == 404
    error(response)


@pytest.mark.parametrize(
    ("method", "path"),
    [("PUT", CREATE), ("POST", "approvals"), ("GET", "sessions/x/tasks")],
)
async def test_wrong_method_gets_405(oskar, error, method, path) -> None:
    response = await oskar(method, path)

    assert response.status_code == 405
    error(response)
    assert response["Allow"]


async def test_unknown_host_gets_400(oskar, error) -> None:
    response = await oskar("GET", "approvals", headers={"Host": "evil.example"})

    assert response.status_code == 400
    error(response)


async def test_fault_gets_500_and_is_logged(oskar, error, monkeypatch, caplog) -> None:
    from sessions_app.api import approvals

    def fail(*_):
        raise RuntimeError("secret inside")

    monkeypatch.setattr(approvals, "projects_of", fail)

    response = await oskar("GET", "approvals")

    assert response.status_code == 500
    assert "secret" not in str(error(response))
    assert "secret inside" in caplog.text


async def test_pages_keep_their_own_errors(oskar) -> None:
    response = await oskar("GET", "/no/such/page/")

    assert response.status_code == 404
    assert response["Content-Type"].startswith("text/html")


async def test_openapi_document_lists_every_call(oskar) -> None:
    document = await oskar.get("openapi.json")

    calls = {
        (method.upper(), path.removeprefix("/api/v1/"))
        for path, methods in document["paths"].items()
        for method in methods
    }
    assert calls == {
        ("POST", "projects/{project}/sessions"),
        ("GET", "projects/{project}/sessions"),
        ("POST", "projects/{project}/traces"),
        ("GET", "projects/{project}/config"),
        ("PUT", "projects/{project}/config"),
        ("GET", "projects/{project}/agents/{agent}/config"),
        ("PUT", "projects/{project}/agents/{agent}/config"),
        ("GET", "approvals"),
        ("GET", "sessions/{session_id}"),
        ("PATCH", "sessions/{session_id}"),
        ("DELETE", "sessions/{session_id}"),
        ("POST", "sessions/{session_id}/tasks"),
        ("POST", "sessions/{session_id}/interrupt"),
        ("POST", "sessions/{session_id}/compact"),
        ("GET", "sessions/{session_id}/approvals"),
        ("POST", "sessions/{session_id}/approvals/{tool_call_id}"),
        ("GET", "sessions/{session_id}/events"),
        ("GET", "sessions/{session_id}/stream"),
        ("GET", "sessions/{session_id}/trace.jsonl"),
        ("GET", "sessions/{session_id}/processes"),
        ("DELETE", "sessions/{session_id}/processes/{process_id}"),
    }
    assert document["components"]["securitySchemes"]


async def test_there_is_no_page_that_loads_from_elsewhere(oskar) -> None:
    assert (await oskar("GET", "docs")).status_code == 404
