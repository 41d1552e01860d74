"""Every answer is guarded, and so is every request that changes something."""

import pytest
from django.http import HttpResponse, JsonResponse
from django.test import RequestFactory

from penguin_web.middleware import guard

OWN = "http://testserver"


def answer(method="POST", path="/", *, secure=False, **headers):
    respond = guard(lambda request: HttpResponse("done"))
    request = RequestFactory().generic(method, path, headers=headers, secure=secure)
    return respond(request)


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
@pytest.mark.parametrize(
    "origin",
    [
        "http://evil.example",
        "http://testserver:9999",
        "https://testserver",
        "http://testserver.evil.example",
        "null",
        "",
    ],
)
def test_unsafe_request_of_another_origin_is_refused(method, origin):
    assert answer(method, origin=origin).status_code == 403


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_unsafe_request_that_hides_its_origin_is_refused_by_what_the_browser_says(site):
    assert answer(**{"Sec-Fetch-Site": site}).status_code == 403


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": OWN},
        {"origin": "http://TESTSERVER:80"},
        {"Sec-Fetch-Site": "same-origin"},
        {},
    ],
)
def test_own_pages_and_programs_pass(headers):
    assert answer(**headers).status_code == 200


def test_reading_is_free_to_every_origin():
    assert answer("GET", origin="http://evil.example").status_code == 200


def test_trusted_origin_passes(settings):
    settings.CSRF_TRUSTED_ORIGINS = ["https://penguin.example"]

    assert answer(origin="https://penguin.example").status_code == 200
    assert answer(origin="http://penguin.example").status_code == 403


def test_api_tells_the_refusal_in_its_own_shape():
    response = answer("POST", "/api/v1/sessions/x/tasks", origin="http://evil.example")

    assert isinstance(response, JsonResponse)
    assert b'"code": "foreign_origin"' in response.content


def test_cookies_are_secure_exactly_when_the_request_was():
    def respond(request):
        response = HttpResponse()
        response.set_cookie("sessionid", "x", httponly=True)
        return response

    for secure in (True, False):
        response = guard(respond)(RequestFactory().get("/", secure=secure))
        assert bool(response.cookies["sessionid"]["secure"]) is secure


async def test_it_guards_async_views_alike():
    async def respond(request):
        return HttpResponse("done")

    request = RequestFactory().post("/", headers={"origin": "http://evil.example"})

    assert (await guard(respond)(request)).status_code == 403


@pytest.mark.django_db(transaction=True)
async def test_pages_carry_a_strict_policy_and_no_frame_may_hold_them(async_client):
    response = await async_client.get("/login/")

    policy = dict(
        directive.strip().split(" ", 1)
        for directive in response["Content-Security-Policy"].split(";")
    )
    assert policy["default-src"] == "'self'"
    assert policy["img-src"] == "'self'"
    assert policy["connect-src"] == "'self'"
    assert policy["frame-ancestors"] == "'none'"
    assert "unsafe" not in response["Content-Security-Policy"]
    assert response["X-Frame-Options"] == "DENY"
    assert response["X-Content-Type-Options"] == "nosniff"
    assert response["Referrer-Policy"] == "same-origin"
    assert response["Cross-Origin-Opener-Policy"] == "same-origin"
    assert response["Cross-Origin-Resource-Policy"] == "same-origin"
