"""Orders by HTTP: POST makes one, GET lists them."""

import json

from django.db import transaction
from django.http import HttpRequest, JsonResponse
from django.views.decorators.csrf import csrf_exempt

from corvo_sdk.outbox import django as outbox
from shop.jobs import write_invoice
from shop.models import Order


@csrf_exempt  # an example without a page has no form to protect
def orders(request: HttpRequest) -> JsonResponse:
    """Make an order and the job that follows it, or neither."""
    if request.method != "POST":
        listed = [{"order": str(order), "invoice": order.invoice} for order in Order.objects.all()]
        return JsonResponse({"orders": listed})
    wanted = json.loads(request.body)
    try:
        with transaction.atomic():
            order = Order.objects.create(item=wanted["item"], pieces=wanted["pieces"])
            outbox.add(write_invoice.call(order.pk))
            if order.pieces > 10:  # found out late, as it happens
                raise ValueError("we do not have so many")  # noqa: TRY301 - rolls back both rows
    except ValueError as error:
        return JsonResponse({"error": str(error)}, status=409)
    return JsonResponse({"id": order.pk}, status=201)
