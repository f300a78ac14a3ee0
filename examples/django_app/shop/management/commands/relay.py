"""python manage.py relay: carry committed rows of the outbox to Corvo, until it is stopped."""

import signal

from django.core.management.base import BaseCommand

from corvo_sdk.outbox import Relay
from corvo_sdk.outbox import django as outbox
from shop.jobs import app


class Command(BaseCommand):
    """Run one, or several: they share the work."""

    help = "Carry committed rows of the outbox to Corvo."

    def handle(self, *_args: object, **_options: object) -> None:
        """Relay until SIGTERM or Ctrl-C; the step under way is finished."""
        relay = Relay(outbox.connect, app.client)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: relay.stop())
        relay.run()
        app.close()
