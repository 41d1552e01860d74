"""Keep the images of queued messages in rows of their own."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("sessions_app", "0003_attached_image"),
    ]

    operations = [
        migrations.RemoveField(
            model_name="queuedmessage",
            name="images",
        ),
        migrations.AddField(
            model_name="attachedimage",
            name="message",
            field=models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="images",
                to="sessions_app.queuedmessage",
            ),
        ),
    ]
