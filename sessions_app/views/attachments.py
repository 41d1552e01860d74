"""The images in a session's composer: put in, looked at, thrown away."""

from __future__ import annotations

from typing import Any

from asgiref.sync import sync_to_async
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.views.decorators.http import require_GET

from sessions_app import runtime
from sessions_app.chat_view import urls_of
from sessions_app.models import AttachedImage, Session
from sessions_app.permissions import Action
from sessions_app.views.answers import action, done, is_htmx, session_in
from traces_app.image_response import image_response
from traces_app.omnimessage.image_data import bytes_of, image_type


@action(Action.OPERATE)
async def attach(request: HttpRequest, session: Session, user: Any) -> HttpResponse:
    """Put images into the composer, all that were sent or none."""
    uploads = await sync_to_async(_uploads)(request)
    await runtime.attach_images(session, uploads, user=user)
    return await _answer(request, session)


@action(Action.OPERATE)
async def detach(request: HttpRequest, session: Session, user: Any) -> HttpResponse:
    """Throw an image away."""
    image = request.POST.get("image", "")
    if not image.isdecimal():
        raise runtime.invalid("image", "This is no attached image.")
    await runtime.detach_image(session, int(image), user=user)
    return await _answer(request, session)


@require_GET
@login_required
def attached_image(
    request: HttpRequest, project: str, session: str, image: int
) -> HttpResponse:
    """Show an image that waits in the composer."""
    row = session_in(request.user, Action.OPERATE, project, session)
    found = AttachedImage.objects.filter(session=row, pk=image).first()
    data = bytes_of(found.url) if found else None
    kind = image_type(data) if data else None
    if not data or not kind:
        raise Http404("The image was sent or thrown away.")
    return image_response(request, data, kind, name=f"image-{image}")


def _uploads(request: HttpRequest) -> list[runtime.Upload]:
    """Read the files, once each is known to be small enough."""
    files = request.FILES.getlist("images")
    if not files:
        raise runtime.invalid("images", "No image was chosen.")
    for file in files:
        runtime.check_upload(file.name or "The image", file.size or 0)
    return [runtime.Upload(name=file.name or "", data=file.read()) for file in files]


async def _answer(request: HttpRequest, session: Session) -> HttpResponse:
    """Return the images as they are now; the page need not wait for its socket."""
    if not is_htmx(request):
        return done(request, session)
    html = await sync_to_async(_html)(session)
    return HttpResponse(html)


def _html(session: Session) -> str:
    context = {
        "attached": list(runtime.in_composer(session)),
        "urls": urls_of(session),
        "is_answer": True,
    }
    return render_to_string("sessions_app/partials/attachments.html", context)
