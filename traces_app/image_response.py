"""How an image is handed to a browser: as what its bytes are, and nothing else."""

from __future__ import annotations

import hashlib

from django.http import HttpRequest, HttpResponse
from django.utils.cache import get_conditional_response

FRESH_S = 3600  # a browser may show an image again without asking


def image_response(
    request: HttpRequest, data: bytes, kind: str, *, name: str
) -> HttpResponse:
    """Return the image, or 304 to a browser that has the same bytes already."""
    suffix = kind.removeprefix("image/")
    response = HttpResponse(
        data,
        content_type=kind,
        headers={
            "Cache-Control": f"private, max-age={FRESH_S}",
            "Content-Disposition": f'inline; filename="{name}.{suffix}"',
            "X-Content-Type-Options": "nosniff",
        },
    )
    etag = f'"{hashlib.sha256(data).hexdigest()}"'
    response["ETag"] = etag
    answer = get_conditional_response(request, etag=etag, response=response)
    return response if answer is None else answer
