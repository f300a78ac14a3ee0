"""Sends events to the endpoints that asked for them, and checks who sends to us.

Owns the dispatcher: for each webhook it follows the feed from the webhook's own cursor, posts what
matches, tries again with growing pauses, stops bothering an endpoint that is down, and reports to
the machine, which keeps cursor, counts and dead letters.

Invariants:

- At least once: the cursor passes an event only after it was delivered, given up or not wanted. A
  repeat after a crash carries the same delivery id.
- Each webhook has its own cursor, window and connections, so a slow endpoint delays only itself.
- Everything is bounded: deliveries under way, what waits ahead of the cursor, the delivery log,
  dead letters, what is read of an answer. Nothing is queued: the feed is the queue.
- An address is checked after the name was resolved, and that very address is connected to.

Deliberately absent: decisions about jobs, following redirects, proxies, cookies.

Started by `server`; its log and the buttons are used by `api`. Read `endpoint.py` first, then
`dispatcher.py`.
"""

from corvo.webhooks.delivery import Record
from corvo.webhooks.dispatcher import Dispatcher
from corvo.webhooks.guard import Guard, GuardError
from corvo.webhooks.signature import sign, verify
from corvo.webhooks.target import Target, parse_target

__all__ = [
    "Dispatcher",
    "Guard",
    "GuardError",
    "Record",
    "Target",
    "parse_target",
    "sign",
    "verify",
]
