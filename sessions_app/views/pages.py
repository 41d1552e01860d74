"""Pages: whole, readable without a script, and never a change."""

from __future__ import annotations

from typing import Any

from django.http import (
    Http404,
    HttpRequest,
    HttpResponse,
    StreamingHttpResponse,
)
from django.shortcuts import redirect, render

from sessions_app.cards import card_of
from sessions_app.models import ApprovalRequest
from sessions_app.permissions import Action, may, project_for, projects_of
from sessions_app.runtime import configs
from sessions_app.views.answers import page, session_in
from sessions_app.views.kept_files import artifact_of, chunks_of
from sessions_app.views.toolsets import toolset_of


@page
def home(request: HttpRequest) -> HttpResponse:
    """Lead to the sessions of the project that was seen last."""
    slugs = list(projects_of(request.user).values_list("slug", flat=True))
    if not slugs:
        return render(request, "sessions_app/no_project.html")
    last = request.COOKIES.get("project", "")
    first = configs.DEFAULT_PROJECT if configs.DEFAULT_PROJECT in slugs else slugs[0]
    return redirect("session_list", last if last in slugs else first)


@page
def approvals(request: HttpRequest, project: str) -> HttpResponse:
    """Show every call of the project that waits, oldest first."""
    row = project_for(request.user, Action.READ, project)
    pending = list(
        ApprovalRequest.objects.filter(
            decision=None, session__project=row, session__deleted_at=None
        )
        .select_related("session", "session__project", "session__agent")
        .order_by("id")
    )
    cards = [
        card_of(request_row, request_row.session, place=(at, len(pending)))
        for at, request_row in enumerate(pending, start=1)
    ]
    context = {
        "project": row,
        "calls": list(zip(pending, cards, strict=True)),
        "cards": cards,
        "sessions": len({request_row.session_id for request_row in pending}),
        "may_decide": may(request.user, Action.DECIDE, row),
    }
    return render(request, "sessions_app/approvals.html", context)


@page
def settings(request: HttpRequest, project: str) -> HttpResponse:
    """Show what is in force in the project; changes are made elsewhere."""
    row = project_for(request.user, Action.READ, project)
    config, _number = configs.current(row)
    agents = list(row.agents.select_related("project").order_by("name"))
    documents = [_document("Project", row)]
    documents += [_document(f"Agent {agent.name}", agent) for agent in agents]
    context = {
        "project": row,
        "config": config,
        "documents": documents,
        "toolsets": [toolset_of(agent, config) for agent in agents],
        "members": row.memberships.select_related("user").order_by("user__username"),
    }
    return render(request, "sessions_app/settings.html", context)


def _document(title: str, target: Any) -> dict[str, Any]:
    text, number = configs.document_text(target)
    version = configs.newest_version(target)
    return {"title": title, "text": text, "number": number, "version": version}


@page
def output_file(
    request: HttpRequest, project: str, session: str, seq: int
) -> StreamingHttpResponse:
    """Hand out the full output of a call, as long as it is what was recorded."""
    row = session_in(request.user, Action.READ, project, session)
    path = artifact_of(row, seq)
    if path is None:
        raise Http404("The full output is not kept any more.")
    return StreamingHttpResponse(
        chunks_of(path),
        content_type="text/plain; charset=utf-8",
        headers={
            "Content-Disposition": f'attachment; filename="{row.pk}-{seq}.txt"',
            "Content-Length": str(path.stat().st_size),
            "X-Content-Type-Options": "nosniff",
        },
    )
