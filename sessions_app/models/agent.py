"""An agent of a project: a name and versions of its document."""

from __future__ import annotations

from django.db import models

from sessions_app.models.project import Project


class Agent(models.Model):
    """The document (system prompt, tools, limits) lives in `ConfigVersion`."""

    project = models.ForeignKey(
        Project, on_delete=models.CASCADE, related_name="agents"
    )
    name = models.SlugField(max_length=60)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint(fields=["project", "name"], name="agent_name_once")
        ]

    def __str__(self) -> str:
        return self.name
