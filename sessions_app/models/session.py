"""A session: one conversation with one agent, and what must outlive the server."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from sessions_app.models.agent import Agent
from sessions_app.models.project import Project
from traces_app.models import Trace


class ApprovalMode(models.TextChoices):
    """How calls are decided; listed from strict to permissive."""

    DENY_ALL = "deny-all", "deny-all"
    ALWAYS_ASK = "always-ask", "always-ask"
    READ_ONLY = "read-only", "read-only"
    ALLOW_ALL = "allow-all", "allow-all"


class SessionStatus(models.TextChoices):
    """Waiting: at least one approval is pending, a child's included."""

    IDLE = "idle", "Idle"
    RUNNING = "running", "Running"
    WAITING = "waiting", "Waiting"


class Owner(models.Model):
    """A process that hosts live sessions; alive while its lock file is held."""

    id = models.CharField(primary_key=True, max_length=40)
    pid = models.PositiveIntegerField()
    host = models.CharField(max_length=120)
    started_at = models.DateTimeField(auto_now_add=True)
    heartbeat_at = models.DateTimeField(auto_now=True)
    ended_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return self.id


class Session(models.Model):
    """The row of a conversation; its record is the Trace."""

    id = models.CharField(primary_key=True, max_length=60)
    project = models.ForeignKey(
        Project, on_delete=models.PROTECT, related_name="sessions"
    )
    agent = models.ForeignKey(Agent, on_delete=models.PROTECT, related_name="sessions")
    trace = models.OneToOneField(
        Trace, on_delete=models.PROTECT, related_name="session_row"
    )
    owner = models.ForeignKey(
        Owner, null=True, blank=True, on_delete=models.SET_NULL, related_name="sessions"
    )
    parent = models.ForeignKey(
        "self", null=True, blank=True, on_delete=models.PROTECT, related_name="children"
    )
    depth = models.PositiveSmallIntegerField(default=0)
    provider = models.CharField(max_length=60)
    model_id = models.CharField(max_length=200)
    thinking_level = models.CharField(max_length=10, null=True, blank=True)
    workspace = models.TextField()  # absolute
    approval_mode = models.CharField(max_length=12, choices=ApprovalMode)
    mode_set_by = models.CharField(max_length=150, blank=True)  # username
    mode_set_at = models.DateTimeField(null=True, blank=True)
    status = models.CharField(
        max_length=8, choices=SessionStatus, default=SessionStatus.IDLE
    )
    title = models.CharField(max_length=200, blank=True)
    draft = models.TextField(blank=True)  # the composer's text, kept on the server
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL
    )
    created_at = models.DateTimeField(auto_now_add=True)
    last_activity_at = models.DateTimeField(auto_now_add=True)
    is_archived = models.BooleanField(default=False)
    is_pinned = models.BooleanField(default=False)
    deleted_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-last_activity_at", "-id"]
        indexes = [
            models.Index(
                fields=["project", "is_archived", "-last_activity_at", "-id"],
                name="session_list",
            ),
            models.Index(fields=["project", "status"], name="session_status"),
        ]

    def __str__(self) -> str:
        return self.title or self.id


class QueuedMessage(models.Model):
    """A message sent while a task runs: durable, visible, recallable until taken."""

    session = models.ForeignKey(
        Session, on_delete=models.CASCADE, related_name="queued_messages"
    )
    text = models.TextField()
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["id"]

    def __str__(self) -> str:
        return self.text[:60]
