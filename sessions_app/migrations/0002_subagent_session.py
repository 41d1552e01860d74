"""Make the rows of subagents."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("sessions_app", "0001_initial"),
    ]

    operations = [
        migrations.CreateModel(
            name="SubagentSession",
            fields=[
                (
                    "session",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="subagent",
                        serialize=False,
                        to="sessions_app.session",
                    ),
                ),
                ("number", models.PositiveSmallIntegerField()),
                ("tool_call_id", models.CharField(max_length=200)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("working", "Working"),
                            ("idle", "Idle"),
                            ("released", "Released"),
                            ("evicted", "Evicted"),
                            ("lost", "Lost"),
                        ],
                        default="working",
                        max_length=8,
                    ),
                ),
                ("task_began_at", models.DateTimeField(auto_now_add=True)),
                ("task_ended_at", models.DateTimeField(null=True)),
            ],
            options={
                "ordering": ["number"],
            },
        ),
    ]
