"""Documents through the API."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.django_db(transaction=True)

PROJECT = "projects/default/config"
AGENT = "projects/default/agents/default_agent/config"


@pytest.fixture
async def clara(caller, make_member):
    from asgiref.sync import sync_to_async

    user = await sync_to_async(make_member)("clara", "config_editor")
    return await caller(user)


@pytest.mark.parametrize("path", [PROJECT, AGENT])
async def test_member_reads_the_document(caller, viewer, path) -> None:
    vera = await caller(viewer)

    document = await vera.get(path)

    assert document["version"] == 1
    assert document["yaml"]


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (PROJECT, "approval: {mode: 'read-only'} # mine\r\n"),
        (AGENT, "system_prompt: x"),
    ],
)
async def test_saved_document_comes_back_byte_for_byte(clara, path, text) -> None:
    body = {"yaml": text, "base_version": 1, "reason": "why not"}

    response = await clara("PUT", path, body)

    assert response.status_code == 200
    assert response.json()["version"] == 2
    document = await clara.get(path)
    assert (document["yaml"], document["author"]) == (text, "clara")
    assert document["reason"] == "why not"


async def test_stale_base_gets_409_with_the_newest_version(clara, error) -> None:
    body = {"yaml": "{}", "base_version": 1}
    await clara("PUT", PROJECT, body)

    response = await clara("PUT", PROJECT, body)

    assert response.status_code == 409
    assert error(response)["code"] == "stale_base"
    assert error(response)["details"] == {"version": 2}
    assert "clara" in error(response)["message"]


async def test_faulty_document_gets_422_with_places(clara, error) -> None:
    body = {"yaml": "approval:\n  mode: none\n  expiry_s: '5'\n", "base_version": 1}

    response = await clara("PUT", PROJECT, body)

    assert response.status_code == 422
    first, second = error(response)["details"]
    assert set(first) == {"path", "line", "column", "message"}
    assert (first["path"], first["line"], first["column"]) == ("approval.mode", 2, 9)
    assert (second["path"], second["line"]) == ("approval.expiry_s", 3)
    assert (await clara.get(PROJECT))["version"] == 1


@pytest.mark.parametrize("role", ["viewer", "operator", "approver", "auditor"])
async def test_other_roles_edit_nothing(caller, make_member, error, role) -> None:
    from asgiref.sync import sync_to_async

    someone = await caller(await sync_to_async(make_member)("someone", role))

    for path in (PROJECT, AGENT):
        response = await someone("PUT", path, {"yaml": "{}", "base_version": 1})
        assert response.status_code == 403
        error(response)


async def test_unknown_agent_gets_404(clara, error) -> None:
    response = await clara("GET", "projects/default/agents/none/config")

    assert response.status_code == 404
    error(response)
