"""How actions are asked and answered: who may, what a browser gets, what htmx gets."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any

from asgiref.sync import sync_to_async
from django.contrib.auth.decorators import login_required
from django.http import (
    Http404,
    HttpRequest,
    HttpResponse,
    HttpResponseNotAllowed,
    HttpResponseRedirect,
)
from django.http.response import HttpResponseBase
from django.shortcuts import render, resolve_url
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme, urlencode
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from sessions_app import runtime
from sessions_app.models import Session
from sessions_app.permissions import Action, session_for

Answer = Coroutine[Any, Any, HttpResponse]
Act = Callable[[HttpRequest, Session, Any], Answer]
View = Callable[..., Answer]

# What is kept of a form that could not be taken, and how its fields are labelled.
LABELS = {"text": "Message", "title": "Title", "reason": "Reason", "chars": "Input"}
LONG = {"text"}
DROPPED = {"csrfmiddlewaretoken", "password", "old_password"}


class SeeOther(HttpResponseRedirect):
    """A redirect that is always followed with GET."""

    status_code = 303


def page(view: Callable[..., HttpResponseBase]) -> Callable[..., HttpResponseBase]:
    """Make a view a page: GET only, for people who are logged in, never from a cache.

    A page that comes back with the browser's back button must show what waits now.
    """
    return require_GET(login_required(never_cache(view)))


def is_htmx(request: HttpRequest) -> bool:
    """Return whether the page's script asks, and a part of the page is wanted."""
    return request.headers.get("HX-Request") == "true"


def session_in(user: Any, action: Action, project: str, session_id: str) -> Session:
    """Return the session if it is one of the project; raises like `session_for`."""
    session = session_for(user, action, session_id)
    if session.project.slug != project:
        raise Http404
    return session


def action(needed: Action) -> Callable[[Act], View]:
    """Make a view of what a person does to a session: POST only, with the right to.

    The function gets the request, the session and the person; a `Refusal` it raises
    becomes a page, or a notice in the page.
    """

    def decorate(act: Act) -> View:
        @wraps(act)
        async def view(
            request: HttpRequest, project: str, session: str
        ) -> HttpResponse:
            if request.method != "POST":
                return HttpResponseNotAllowed(["POST"])
            user = await request.auser()
            if not user.is_authenticated:
                return ask_login(request)
            row = await sync_to_async(session_in)(user, needed, project, session)
            try:
                return await act(request, row, user)
            except runtime.Refusal as refusal:
                return await refused(request, refusal, back=chat_url(row))

        return view

    return decorate


def ask_login(request: HttpRequest) -> HttpResponse:
    """Send the person to the login, and back to the page they came from."""
    back = request.headers.get("HX-Current-URL") or request.get_full_path()
    address = f"{reverse('login')}?{urlencode({'next': back})}"
    if is_htmx(request):
        return HttpResponse(status=401, headers={"HX-Redirect": address})
    return SeeOther(address)


def chat_url(session: Session) -> str:
    """Return the address of the session's chat."""
    return reverse("chat", args=[session.project.slug, session.pk])


def done(request: HttpRequest, session: Session) -> HttpResponse:
    """Answer an action that worked: the page shows it by itself, or is shown again."""
    if is_htmx(request):
        return HttpResponse(status=204)
    return SeeOther(next_url(request, chat_url(session)))


def next_url(request: HttpRequest, default: str) -> str:
    """Return where a form says it belongs, if that is a page of this site."""
    address = request.POST.get("next", "")
    host = request.get_host()
    if address and url_has_allowed_host_and_scheme(address, allowed_hosts={host}):
        return resolve_url(address)
    return default


async def refused(
    request: HttpRequest, refusal: runtime.Refusal, *, back: str
) -> HttpResponse:
    """Say why an action was not done; a page keeps what was typed."""
    if is_htmx(request):
        html = render_to_string("partials/notice.html", {"text": refusal.message})
        return HttpResponse(html, status=refusal.status)
    if refusal.status == 404:
        raise Http404(refusal.message)
    context = {
        "status": refusal.status,
        "reason": refusal.message,
        "back": back,
        **kept_of(request),
    }
    name = "422.html" if refusal.status == 422 else "409.html"
    return await sync_to_async(render)(request, name, context, status=refusal.status)


def kept_of(request: HttpRequest) -> dict[str, Any]:
    """Return the fields of a form as they were sent, to be sent again.

    A decision is never among them: it has to be made on the call as it is now.
    """
    if "decision" in request.POST:
        return {}
    kept = [
        {
            "name": name,
            "value": value,
            "label": LABELS.get(name, ""),
            "is_long": name in LONG,
        }
        for name, values in request.POST.lists()
        for value in values
        if name not in DROPPED
    ]
    has_words = any(field["label"] for field in kept)
    return {"action": request.path, "kept": kept} if has_words else {}
