"""Who belongs to a project, and as what."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from sessions_app.models.project import Project


class Role(models.TextChoices):
    """The roles of a project; those of one person add up."""

    VIEWER = "viewer", "Viewer"
    OPERATOR = "operator", "Operator"
    APPROVER = "approver", "Approver"
    CONFIG_EDITOR = "config_editor", "Config editor"
    AUDITOR = "auditor", "Auditor"
    PROJECT_ADMIN = "project_admin", "Project admin"


class Membership(models.Model):
    """One role of one person in one project."""

    project = models.ForeignKey(
        Project, on_delete=models.CASCADE, related_name="memberships"
    )
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="memberships"
    )
    role = models.CharField(max_length=20, choices=Role)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["project", "user", "role"], name="membership_once"
            )
        ]

    def __str__(self) -> str:
        return f"{self.user} {self.role} in {self.project}"
