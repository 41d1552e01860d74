"""What running tools leave behind outside the Trace: processes, output, artifacts."""

from __future__ import annotations

from django.db import models

from sessions_app.models.session import Owner, Session


class ProcessState(models.TextChoices):
    """Lost: its server died, so nobody can reach it any more."""

    RUNNING = "running", "Running"
    EXITED = "exited", "Exited"
    EVICTED = "evicted", "Evicted"
    LOST = "lost", "Lost"


class CommandSession(models.Model):
    """A command an agent started, known by its `process_id`."""

    process_id = models.CharField(primary_key=True, max_length=20)
    session = models.ForeignKey(
        Session, on_delete=models.CASCADE, related_name="command_sessions"
    )
    owner = models.ForeignKey(Owner, null=True, on_delete=models.SET_NULL)
    tool_call_id = models.CharField(max_length=200)
    pid = models.PositiveIntegerField()
    start_ticks = models.PositiveBigIntegerField()  # tells a reused pid apart
    cmd = models.TextField()
    cwd = models.TextField()
    state = models.CharField(
        max_length=8, choices=ProcessState, default=ProcessState.RUNNING
    )
    is_background = models.BooleanField(default=False)  # outlived its call
    exit_code = models.IntegerField(null=True)
    signal = models.CharField(max_length=12, blank=True)
    exit_told = models.BooleanField(default=False)  # the model knows of its end
    started_at = models.DateTimeField(auto_now_add=True)
    ended_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["started_at"]

    def __str__(self) -> str:
        return self.process_id


class OutputChunk(models.Model):
    """A durable span of a streaming item; superseded by the complete message."""

    session = models.ForeignKey(
        Session, on_delete=models.CASCADE, related_name="output_chunks"
    )
    item = models.CharField(max_length=220)  # process_id, tool_call_id or text item
    start = models.PositiveBigIntegerField()  # characters from the item's beginning
    stop = models.PositiveBigIntegerField()
    text = models.TextField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["session", "item", "start"], name="chunk_once"
            )
        ]

    def __str__(self) -> str:
        return f"{self.item} {self.start}–{self.stop}"


class Artifact(models.Model):
    """The full text of a long output, kept as a file with its digest."""

    session = models.ForeignKey(
        Session, on_delete=models.CASCADE, related_name="artifacts"
    )
    item = models.CharField(max_length=220)
    path = models.TextField()
    size = models.PositiveBigIntegerField()  # bytes
    sha256 = models.CharField(max_length=64)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["session", "item"], name="artifact_once")
        ]

    def __str__(self) -> str:
        return self.item
