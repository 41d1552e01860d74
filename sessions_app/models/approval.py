"""Approval requests: rows first, so that a pending call outlives everything."""

from __future__ import annotations

from django.db import models

from sessions_app.models.session import Session


class ApprovalRequest(models.Model):
    """One question to a person about one call, and the one answer to it.

    `decision` is null while it is pending; deciding is a compare-and-set on that.
    `decision_recorded` tells whether the Trace holds the answer already.
    """

    session = models.ForeignKey(
        Session, on_delete=models.CASCADE, related_name="approval_requests"
    )
    tool_call_id = models.CharField(max_length=200)
    attempt = models.PositiveSmallIntegerField(default=1)
    name = models.CharField(max_length=200)
    arguments = models.TextField()  # JSON text as the model wrote it
    workdir = models.TextField(null=True)
    permission = models.CharField(max_length=2, blank=True)  # "r", "rw", "" unknown
    origin = models.JSONField(default=list)  # child session ids, outermost first
    arguments_sha256 = models.CharField(max_length=64)
    asked_because = models.CharField(max_length=300)
    requested_at = models.DateTimeField(auto_now_add=True)
    decision = models.CharField(max_length=5, null=True)
    source = models.CharField(max_length=10, blank=True)
    via = models.CharField(max_length=10, blank=True)
    decided_by = models.CharField(max_length=150, null=True)
    decided_at = models.DateTimeField(null=True)
    reason = models.TextField(blank=True)
    shown_sha256 = models.CharField(max_length=64, blank=True)
    edited_arguments = models.TextField(null=True)
    decision_recorded = models.BooleanField(default=False)

    class Meta:
        ordering = ["id"]
        constraints = [
            models.UniqueConstraint(
                fields=["session", "tool_call_id", "attempt"], name="request_once"
            )
        ]
        indexes = [
            models.Index(
                fields=["session"],
                condition=models.Q(decision__isnull=True),
                name="request_pending",
            )
        ]

    def __str__(self) -> str:
        return f"{self.name} {self.tool_call_id}"
