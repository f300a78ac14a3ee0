"""Outgoing webhooks: what an operator set up, how far delivery has come, what could not be sent.

Two records per webhook, because one changes when a person acts and the other every few seconds.
"""

from msgspec import Struct, field

from corvo.model.event import EVENT_NAMES, Event

EVERYTHING = "*"
_JOB = "job."


class Webhook(Struct, frozen=True, array_like=True, gc=False):
    """One endpoint and which events it wants."""

    id: bytes
    ns: int
    url: str
    events: tuple[str, ...]  # patterns, see `event_types`
    queues: tuple[str, ...] = ()  # names, or the start of names with a star; empty: all
    secret: str = ""  # signs what is sent; never leaves the server
    is_enabled: bool = True  # what the operator wants; suspension is in the progress
    retry_limit: int = 0  # tries after the first one
    timeout_ms: int = 0
    created_ms: int = 0
    updated_ms: int = 0
    version: int = 0  # position of the command that wrote this record
    disabled_reason: str = ""  # why the server itself switched it off


class Progress(Struct, array_like=True, gc=False):
    """How far the delivery of one webhook has come. Written by the dispatcher's reports.

    The cursor needs neither epoch nor chain of the history: it lies in the same store, so whatever
    takes the store back takes the cursor back with it.
    """

    epoch: int  # position at which the cursor was set; reports of another epoch are void
    index: int  # every event of entries up to here is dealt with
    seq: int  # and every event up to this one
    done: list[int] = field(default_factory=list[int])  # dealt with beyond `seq`, rising
    delivered: int = 0  # deliveries answered with 2xx
    failed: int = 0  # deliveries given up
    skipped: int = 0  # events that retention removed before their turn
    letters: int = 0  # dead letters kept (audit.webhooks)
    failures: int = 0  # failed tries since the last success
    rounds: int = 0  # suspensions since the last success
    suspended_ms: int = 0  # no try before this instant; 0: not suspended
    last_status: int = 0  # HTTP status of the last try; 0: there was no answer
    last_error: str = ""  # empty when the last try succeeded
    last_ms: int = 0  # when the last try ended; 0: never tried
    tries: int = 0  # tries written to the delivery log so far; the last ones are kept


class Try(Struct, frozen=True, array_like=True, gc=False):
    """One line of the delivery log: how a delivery stood after a try.

    Tries of one delivery between two reports are one line, so a line may speak of several.
    """

    delivery: bytes
    event: Event | None  # None: a test by hand
    seq: int  # of the event; 0: a test
    at_ms: int  # when the event happened
    tries: int  # made so far
    status: int  # of the delivery, see DELIVERY_STATUS_NAMES
    code: int  # HTTP status; 0: no answer
    error: str  # empty on success
    duration_ms: int
    excerpt: str  # the beginning of what the endpoint answered
    tried_ms: int
    next_ms: int  # when it is tried again; 0: not planned


# Format: numbers are stored; names are appended at the end.
DELIVERY_STATUS_NAMES = ("waiting", "delivered", "failed", "dead")


class DeadLetter(Struct, frozen=True, array_like=True, gc=False):
    """An event that could not be delivered, kept for a person to send again."""

    seq: int
    at_ms: int  # when it happened
    event: Event
    attempts: int
    status: int
    error: str
    failed_ms: int  # when it was given up


class WebhookView(Struct, frozen=True, gc=False):
    """A webhook as a reader sees it; `progress` is a copy."""

    webhook: Webhook
    progress: Progress


def event_types(pattern: str) -> tuple[int, ...]:
    """Numbers of the events a pattern names; empty when it names none.

    `*` is everything, `queue.*` all of one kind, `job.*` all that happen to a job, and `completed`,
    `job.completed` and `queue.paused` one of them.
    """
    found: list[int] = []
    for number, name in enumerate(EVENT_NAMES):
        full = name if "." in name else _JOB + name
        if pattern in (EVERYTHING, name, full) or (
            pattern.endswith(".*") and full.startswith(pattern[:-1])
        ):
            found.append(number)
    return tuple(found)
