"""API tokens: only the hash of one is kept."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from sessions_app.models.project import Project


class ApiToken(models.Model):
    """Acts as its user, in one project or in all the user may see."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="api_tokens"
    )
    project = models.ForeignKey(
        Project, null=True, blank=True, on_delete=models.CASCADE
    )
    sha256 = models.CharField(max_length=64, unique=True)
    last_four = models.CharField(max_length=4)
    scope = models.CharField(max_length=20, blank=True)  # "" = all, or "metrics"
    created_at = models.DateTimeField(auto_now_add=True)
    last_used_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"{self.user} …{self.last_four}"
