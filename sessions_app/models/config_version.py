"""Immutable versions of a project's or an agent's YAML document."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from sessions_app.models.agent import Agent
from sessions_app.models.project import Project


class ConfigVersion(models.Model):
    """One saved document; `agent` is null for the project's own document."""

    project = models.ForeignKey(
        Project, on_delete=models.CASCADE, related_name="config_versions"
    )
    agent = models.ForeignKey(
        Agent,
        null=True,
        blank=True,
        on_delete=models.CASCADE,
        related_name="config_versions",
    )
    number = models.PositiveIntegerField()  # 1, 2, 3 … per document
    yaml = models.TextField()  # exactly as it was saved
    author = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL
    )
    reason = models.CharField(max_length=500, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-number"]
        constraints = [
            models.UniqueConstraint(
                fields=["project", "number"],
                condition=models.Q(agent__isnull=True),
                name="project_version_once",
            ),
            models.UniqueConstraint(
                fields=["agent", "number"],
                condition=models.Q(agent__isnull=False),
                name="agent_version_once",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.agent or self.project} v{self.number}"
