"""The rows of the record: what was written once is never changed.

Responsibilities: `Trace` names a record, `TraceEvent` is one link of its hash chain,
`EventBody` holds the exact JSON text of an event (apart, so that erasing a body
never touches the event), `Blob` keeps long texts and images once, `Checkpoint`
signs a head, `JournalEntry` says who read, exported or verified what.

The database itself refuses to change these rows, see `append_only`; they are
written by `writer` and `journal` alone.
"""

from __future__ import annotations

from django.db import models

# Longest value of a filter column; the body holds the value in full.
COLUMN_LENGTH = 200


class Trace(models.Model):
    """The record of one session; it outlives the session it tells about."""

    session_id = models.CharField(max_length=COLUMN_LENGTH, unique=True)
    parent_session_id = models.CharField(max_length=COLUMN_LENGTH, blank=True)
    project = models.CharField(max_length=60)  # slug
    owner = models.CharField(max_length=150, blank=True)  # username
    title = models.CharField(max_length=200, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    # Set on a record that was imported; such a record never grows.
    imported_at = models.DateTimeField(null=True, blank=True)
    imported_by = models.CharField(max_length=150, blank=True)
    imported_from = models.CharField(max_length=200, blank=True)  # file name
    ends_in_newline = models.BooleanField(default=True)  # of the imported file

    class Meta:
        permissions = [
            ("export_trace", "Can export a trace"),
            ("verify_trace", "Can verify a trace"),
            ("erase_trace", "Can erase bodies of a trace"),
        ]
        indexes = [
            models.Index(fields=["project", "-id"], name="trace_project"),
            models.Index(fields=["parent_session_id"], name="trace_parent"),
        ]

    def __str__(self) -> str:
        return self.session_id

    @property
    def is_imported(self) -> bool:
        """Return whether the record came from a file."""
        return self.imported_at is not None


class TraceEvent(models.Model):
    """One link of a Trace; filter columns repeat what the body says."""

    trace = models.ForeignKey(
        Trace, on_delete=models.PROTECT, related_name="events", db_index=False
    )
    seq = models.PositiveBigIntegerField()  # 1, 2, 3 … without a gap
    segment = models.PositiveIntegerField()  # 1, one more after each compaction
    timestamp = models.CharField(max_length=64)  # as it stands in the body
    type = models.CharField(max_length=12)  # of the envelope
    kind = models.CharField(max_length=COLUMN_LENGTH)  # of the payload
    tool_call_id = models.CharField(max_length=COLUMN_LENGTH, null=True)
    tool = models.CharField(max_length=COLUMN_LENGTH, null=True)
    decision = models.CharField(max_length=COLUMN_LENGTH, null=True)
    status = models.CharField(max_length=COLUMN_LENGTH, null=True)
    size = models.PositiveBigIntegerField()  # bytes of the body
    salt = models.BinaryField(max_length=16)
    body_sha256 = models.BinaryField(max_length=32)
    hash = models.BinaryField(max_length=32)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["trace", "seq"], name="event_seq_once")
        ]
        indexes = [
            models.Index(fields=["trace", "kind", "seq"], name="event_kind"),
            models.Index(
                fields=["trace", "tool_call_id"],
                condition=models.Q(tool_call_id__isnull=False),
                name="event_call",
            ),
            models.Index(
                fields=["trace", "tool", "seq"],
                condition=models.Q(tool__isnull=False),
                name="event_tool",
            ),
            models.Index(
                fields=["trace", "decision", "seq"],
                condition=models.Q(decision__isnull=False),
                name="event_decision",
            ),
        ]

    def __str__(self) -> str:
        return f"#{self.seq} {self.kind}"


class EventBody(models.Model):
    """The exact JSON text of an event; long runs of it may live in blobs.

    The body is `text` with each part's blob put in at its offset. An erased body
    holds a stand-in of the same shape, and who erased it, when and why.
    """

    event = models.OneToOneField(
        TraceEvent, primary_key=True, on_delete=models.PROTECT, related_name="body"
    )
    text = models.TextField()
    has_parts = models.BooleanField(default=False)
    erased_at = models.DateTimeField(null=True, blank=True)
    erased_by = models.CharField(max_length=150, blank=True)
    erased_because = models.CharField(max_length=500, blank=True)

    def __str__(self) -> str:
        return self.text[:60]


class Blob(models.Model):
    """A long text that is kept once, however many bodies hold it."""

    sha256 = models.CharField(primary_key=True, max_length=64)
    text = models.TextField()

    def __str__(self) -> str:
        return self.sha256


class BodyPart(models.Model):
    """Where a blob belongs in a body."""

    body = models.ForeignKey(EventBody, on_delete=models.PROTECT, related_name="parts")
    offset = models.PositiveBigIntegerField()  # characters, in `EventBody.text`
    blob = models.ForeignKey(Blob, on_delete=models.PROTECT, related_name="uses")

    class Meta:
        ordering = ["id"]

    def __str__(self) -> str:
        return f"{self.blob_id} at {self.offset}"


class Checkpoint(models.Model):
    """A signed statement about a head; the checkpoints form a chain of their own.

    `text` is the exact canonical JSON that was signed; the other columns repeat it.
    """

    number = models.PositiveBigIntegerField(unique=True)  # 1, 2, 3 … of the instance
    # Null for the instance journal, which is no session's.
    trace = models.ForeignKey(
        Trace, null=True, on_delete=models.PROTECT, related_name="checkpoints"
    )
    seq = models.PositiveBigIntegerField()
    text = models.TextField()
    hash = models.BinaryField(max_length=32)  # SHA-256 of `text`
    signature = models.BinaryField(max_length=64)  # Ed25519 over `text`
    created_at = models.DateTimeField()

    class Meta:
        indexes = [models.Index(fields=["trace", "-seq"], name="checkpoint_head")]

    def __str__(self) -> str:
        return f"checkpoint {self.number}"


class JournalEntry(models.Model):
    """One thing a person did to the record: read, exported, verified, signed in."""

    seq = models.PositiveBigIntegerField(unique=True)
    timestamp = models.CharField(max_length=64)
    kind = models.CharField(max_length=40)
    person = models.CharField(max_length=150, blank=True)  # username
    session_id = models.CharField(max_length=COLUMN_LENGTH, blank=True)
    project = models.CharField(max_length=60, blank=True)
    # Person, session, kind and hour: the same again within an hour is not repeated.
    occasion = models.CharField(max_length=64, null=True, unique=True)
    text = models.TextField()  # the exact canonical JSON that was hashed
    salt = models.BinaryField(max_length=16)
    body_sha256 = models.BinaryField(max_length=32)
    hash = models.BinaryField(max_length=32)

    class Meta:
        verbose_name_plural = "journal entries"
        indexes = [
            models.Index(fields=["person", "-seq"], name="journal_person"),
            models.Index(fields=["kind", "-seq"], name="journal_kind"),
            models.Index(fields=["session_id", "-seq"], name="journal_session"),
            models.Index(fields=["project", "-seq"], name="journal_project"),
        ]

    def __str__(self) -> str:
        return f"#{self.seq} {self.kind} by {self.person or 'nobody'}"
