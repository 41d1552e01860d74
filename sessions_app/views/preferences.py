"""What a person chooses for this browser; kept in cookies, so the first byte knows."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_POST

from sessions_app.frame import THEMES
from sessions_app.views.answers import SeeOther, next_url

YEAR_S = 365 * 24 * 3600


@require_POST
def set_theme(request: HttpRequest) -> HttpResponse:
    """Keep the theme; an empty one follows the system."""
    response = SeeOther(next_url(request, "/"))
    theme = request.POST.get("theme", "")
    if theme in THEMES and theme:
        # The page's script reads it, to change the theme without a reload.
        response.set_cookie("theme", theme, max_age=YEAR_S, samesite="Lax")
    else:
        response.delete_cookie("theme", samesite="Lax")
    return response
