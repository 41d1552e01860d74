"""What people do: every action is a POST, and goes through the runtime.

With htmx an action answers 204, or the part of the page it concerns; without it, 303
to the page. What the action changes comes to open pages over the socket.
"""

from __future__ import annotations

from typing import Any

from asgiref.sync import sync_to_async
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.shortcuts import render
from django.template.loader import render_to_string

from sessions_app import runtime
from sessions_app.forms import NewSessionForm
from sessions_app.models import ApprovalMode, Project, Session
from sessions_app.permissions import Action, mode_action, project_for, require
from sessions_app.views.answers import (
    SeeOther,
    action,
    ask_login,
    chat_url,
    done,
    is_htmx,
)

CTRL_C = "\x03"
VIAS = frozenset({"button", "key", "form"})


async def session_new(request: HttpRequest, project: str) -> HttpResponse:
    """Show the form of a new session, or make the session."""
    user = await request.auser()
    if not user.is_authenticated:
        return ask_login(request)
    if request.method not in ("GET", "HEAD", "POST"):
        return HttpResponseNotAllowed(["GET", "POST"])
    row = await sync_to_async(project_for)(user, Action.OPERATE, project)
    form = await sync_to_async(NewSessionForm.of)(row, request.POST or None)
    if request.method == "POST" and form.is_valid():
        session = await _create(row, form, user)
        if session is not None:
            return SeeOther(chat_url(session))
    status = 422 if form.errors else 200
    context = {"form": form, "project": row}
    page = "sessions_app/session_new.html"
    return await sync_to_async(render)(request, page, context, status=status)


async def _create(project: Project, form: NewSessionForm, user: Any) -> Session | None:
    """Make the session, or tell the form why not."""
    wish = form.wish()
    if form.loosens:
        await sync_to_async(require)(user, Action.LOOSEN_MODE, project)
    try:
        return await runtime.create_session(project=project, user=user, **wish)
    except runtime.Refusal as refusal:
        field = refusal.details.get("field")
        form.add_error(field if field in form.fields else None, refusal.message)
        return None


@action(Action.OPERATE)
async def send(request: HttpRequest, session: Session, user: Any) -> HttpResponse:
    """Take a message: it starts a task, or waits in the queue while one runs."""
    text = request.POST.get("suggestion") or request.POST.get("text", "")
    text = text.replace("\r\n", "\n")  # as browsers send line ends
    attached = [] if "suggestion" in request.POST else request.POST.getlist("attached")
    starts = await runtime.start_task(
        session.pk,
        text=text,
        attached=[int(i) for i in attached if i.isdecimal() and len(i) < 16],
        user=user,
        queue=True,
    )
    if not starts:
        await runtime.save_draft(session.pk, "")
    return done(request, session)


@action(Action.OPERATE)
async def stop(request: HttpRequest, session: Session, user: Any) -> HttpResponse:
    """Stop the task; asks nothing back."""
    await runtime.interrupt(session.pk, user=user)
    return done(request, session)


@action(Action.DECIDE)
async def decide(request: HttpRequest, session: Session, user: Any) -> HttpResponse:
    """Store a decision on exactly the call that was shown."""
    post = request.POST
    attempt = post.get("attempt", "")
    via = post.get("via", "form")
    row = await runtime.decide(
        session.pk,
        post.get("tool_call_id", ""),
        decision=post.get("decision", ""),
        user=user,
        via=via if via in VIAS else "form",
        reason=post.get("reason", ""),
        arguments_sha256=post.get("arguments_sha256", ""),
        attempt=int(attempt) if attempt.isdecimal() else None,
    )
    if not is_htmx(request):
        return done(request, session)
    context = {"row": row, "is_own": row.decided_by == user.get_username()}
    html = render_to_string("sessions_app/partials/answered.html", context)
    return HttpResponse(html)


@action(Action.OPERATE)
async def set_mode(request: HttpRequest, session: Session, user: Any) -> HttpResponse:
    """Change the approval mode; it counts from the next decision on."""
    mode = request.POST.get("approval_mode", "")
    if mode in ApprovalMode.values and mode != session.approval_mode:
        needed = mode_action(session.approval_mode, mode)
        await sync_to_async(require)(user, needed, session.project)
    await runtime.set_mode(session.pk, mode, user=user)
    return done(request, session)


@action(Action.OPERATE)
async def recall(request: HttpRequest, session: Session, user: Any) -> HttpResponse:
    """Take a queued message back into the composer."""
    queued_id = request.POST.get("queued_id", "")
    if not queued_id.isdecimal():
        raise runtime.invalid("queued_id", "This is no queued message.")
    text = await runtime.recall_queued(session.pk, int(queued_id), user=user)
    if is_htmx(request):
        context = {"text": text}
        html = render_to_string("sessions_app/partials/recalled.html", context)
        return HttpResponse(html)
    draft = "\n\n".join(filter(None, [session.draft, text]))
    await runtime.save_draft(session.pk, draft)
    return done(request, session)


@action(Action.OPERATE)
async def save_draft(request: HttpRequest, session: Session, user: Any) -> HttpResponse:
    """Keep what is in the composer."""
    await runtime.save_draft(session.pk, request.POST.get("text", ""))
    return done(request, session)


@action(Action.OPERATE)
async def retry(request: HttpRequest, session: Session, user: Any) -> HttpResponse:
    """Skip the wait before the next attempt at a request."""
    await runtime.retry_now(session.pk, user=user)
    return done(request, session)


@action(Action.OPERATE)
async def compact(request: HttpRequest, session: Session, user: Any) -> HttpResponse:
    """Summarise the conversation into a fresh context."""
    await runtime.compact(session.pk, user=user)
    return done(request, session)


@action(Action.OPERATE)
async def kill_process(
    request: HttpRequest, session: Session, user: Any
) -> HttpResponse:
    """End a command of the session."""
    process_id = request.POST.get("process_id", "")
    await runtime.kill_process(session.pk, process_id, user=user)
    return done(request, session)


@action(Action.OPERATE)
async def send_input(request: HttpRequest, session: Session, user: Any) -> HttpResponse:
    """Type a line, or Ctrl-C, into a running command; it is kept nowhere."""
    is_signal = request.POST.get("key") == "ctrl-c"
    chars = CTRL_C if is_signal else request.POST.get("chars", "") + "\n"
    process_id = request.POST.get("process_id", "")
    await runtime.send_input(session.pk, process_id, chars, user=user)
    return done(request, session)


@action(Action.OPERATE)
async def rename(request: HttpRequest, session: Session, user: Any) -> HttpResponse:
    """Give the session another title."""
    await runtime.rename(session.pk, request.POST.get("title", ""), user=user)
    return done(request, session)


@action(Action.OPERATE)
async def archive(request: HttpRequest, session: Session, user: Any) -> HttpResponse:
    """Put the session away, or take it back."""
    is_wanted = request.POST.get("archived") == "yes"
    await runtime.archive(session.pk, is_wanted, user=user)
    return done(request, session)
