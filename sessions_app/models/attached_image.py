"""Images of messages that are not on record yet: in the composer, or in the queue."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from sessions_app.models.session import QueuedMessage, Session


class AttachedImage(models.Model):
    """One image; like a draft's text it survives reload, crash and change of device."""

    session = models.ForeignKey(
        Session, on_delete=models.CASCADE, related_name="attached_images"
    )
    # Null: it stands in the composer.
    message = models.ForeignKey(
        QueuedMessage, null=True, on_delete=models.CASCADE, related_name="images"
    )
    name = models.CharField(max_length=200)
    url = models.TextField()  # data:
    width = models.PositiveIntegerField()  # pixels
    height = models.PositiveIntegerField()
    size = models.PositiveIntegerField()  # bytes of the image
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["id"]

    def __str__(self) -> str:
        return self.name
