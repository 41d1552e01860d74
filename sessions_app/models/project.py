"""A project: the frame of agents, sessions, members and policy."""

from __future__ import annotations

from django.db import models


class Project(models.Model):
    """Its documents are versions of `ConfigVersion`; the newest one is in force."""

    slug = models.SlugField(unique=True, max_length=60)
    title = models.CharField(max_length=120, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["slug"]
        default_permissions = ("add", "change", "delete", "view")

    def __str__(self) -> str:
        return self.slug
