"""Subagents: the sessions that work for another one."""

from __future__ import annotations

from django.db import models

from sessions_app.models.session import Session


class SubagentState(models.TextChoices):
    """How the parent's tools stand to a child; what it does is its session's status.

    Released: its answer was handed over. Evicted: to make room. Lost: its server died
    while it worked, so its parent does not hear of it any more.
    """

    WORKING = "working", "Working"
    IDLE = "idle", "Idle"
    RELEASED = "released", "Released"
    EVICTED = "evicted", "Evicted"
    LOST = "lost", "Lost"


class SubagentSession(models.Model):
    """What a child session is to its parent; known there by the session's id."""

    session = models.OneToOneField(
        Session, on_delete=models.CASCADE, primary_key=True, related_name="subagent"
    )
    number = models.PositiveSmallIntegerField()  # among its parent's, from 1
    tool_call_id = models.CharField(max_length=200)  # of the parent, that made it
    state = models.CharField(
        max_length=8, choices=SubagentState, default=SubagentState.WORKING
    )
    task_began_at = models.DateTimeField(auto_now_add=True)
    task_ended_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["number"]

    def __str__(self) -> str:
        return f"{self.session.agent.name} #{self.number}"
