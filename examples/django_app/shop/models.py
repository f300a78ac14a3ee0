"""What the shop keeps."""

from django.db import models


class Order(models.Model):
    """Something somebody wants."""

    item = models.CharField(max_length=200)
    pieces = models.PositiveIntegerField()
    invoice = models.CharField(max_length=40, blank=True)

    def __str__(self) -> str:
        return f"{self.pieces} x {self.item}"
