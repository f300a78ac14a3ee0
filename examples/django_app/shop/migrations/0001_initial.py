"""The orders, and the outbox beside them."""

from django.db import migrations, models

from corvo_sdk.outbox import django as outbox


class Migration(migrations.Migration):
    """Both tables in one database: that is what lets one transaction write to both."""

    initial = True
    operations = (
        migrations.CreateModel(
            name="Order",
            fields=[
                ("id", models.BigAutoField(primary_key=True)),
                ("item", models.CharField(max_length=200)),
                ("pieces", models.PositiveIntegerField()),
                ("invoice", models.CharField(max_length=40, blank=True)),
            ],
        ),
        outbox.create_table(),
    )
