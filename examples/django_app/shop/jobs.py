"""What the shop leaves to workers."""

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from django.db import close_old_connections, transaction

from corvo_sdk import Corvo
from shop.models import Order

P = ParamSpec("P")
R = TypeVar("R")

app = Corvo("shop")


def with_database(function: Callable[P, R]) -> Callable[P, R]:
    """Do for a job what Django does for a request: let go of connections that broke or are old."""

    @functools.wraps(function)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        close_old_connections()
        try:
            return function(*args, **kwargs)
        finally:
            close_old_connections()

    return wrapped


@app.task(queue="invoices", retries=10)
@with_database
def write_invoice(order_id: int) -> str:
    """Give an order its invoice; a second run finds it there."""
    with transaction.atomic():
        order = Order.objects.select_for_update().get(pk=order_id)
        order.invoice = order.invoice or f"R-{order_id:06}"
        order.save(update_fields=["invoice"])
    return order.invoice
