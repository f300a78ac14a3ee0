"""Random commands about webhooks: few identifiers, so that they meet each other."""

from random import Random
from typing import Any

from corvo.model import command as c
from corvo.model import event as e
from corvo.model.webhook import DeadLetter
from tests.factories import make_other_id

WEBHOOK_KINDS = (c.CreateWebhook, c.ReplaceWebhook, c.DeleteWebhook, c.RecordDeliveries)
WEBHOOK_IDS = [make_other_id(2_000_000 + number) for number in range(3)]
URL = "https://example.com/hook"


def draw_webhook_command(chance: Random, kind: type[Any] | None = None, seq: int = 0) -> c.Command:
    """Draw a command; a report speaks of events up to `seq`."""
    kind = kind or chance.choice(WEBHOOK_KINDS)
    identifier = chance.choice(WEBHOOK_IDS)
    if kind is c.DeleteWebhook:
        return c.DeleteWebhook(0, identifier)
    if kind is c.RecordDeliveries:
        return _report(chance, identifier, seq)
    secret: Any = chance.choice(("", "hush"))
    if kind is c.ReplaceWebhook:
        secret = chance.choice((None, "", "other"))
    return kind(
        0,
        identifier,
        URL,
        chance.choice((("*",), ("job.*", "queue.paused"))),
        chance.choice(((), ("mail", "a*"))),
        secret,
        chance.random() < 0.7,
        chance.randrange(5),
    )


def _report(chance: Random, identifier: bytes, seq: int) -> c.RecordDeliveries:
    at = chance.randint(0, seq)
    happened = e.Event(e.COMPLETED, b"", "mail")
    letters = [
        DeadLetter(number, 5, happened, 3, 500, "no", 7)
        for number in sorted(chance.sample(range(1, 20), chance.randrange(4)))
    ]
    return c.RecordDeliveries(
        0,
        identifier,
        0,
        0,
        at,
        [],
        chance.randrange(3),
        chance.randrange(3),
        suspended_ms=chance.choice((0, 0, 99)),
        last_ms=chance.randrange(9),
        letters=tuple(letters),
        revived=tuple(chance.sample(range(1, 20), chance.randrange(3))),
    )
