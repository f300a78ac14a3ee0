"""What can be asked of webhooks. Part of the closed set in `command`."""

from msgspec import Struct

from corvo.model import limits
from corvo.model.webhook import DeadLetter, Try


class CreateWebhook(Struct, frozen=True, array_like=True, gc=False, tag=50):
    """Deliver the events that happen from now on to an endpoint."""

    ns: int
    id: bytes
    url: str
    events: tuple[str, ...]
    queues: tuple[str, ...] = ()
    secret: str = ""
    is_enabled: bool = True
    retry_limit: int = limits.WEBHOOK_RETRIES_DEFAULT
    timeout_ms: int = limits.WEBHOOK_TIMEOUT_MS_DEFAULT


class ReplaceWebhook(Struct, frozen=True, array_like=True, gc=False, tag=51):
    """Change a webhook and end its suspension; enabled again, it starts from now."""

    ns: int
    id: bytes
    url: str
    events: tuple[str, ...]
    queues: tuple[str, ...] = ()
    secret: str | None = None  # None: keep the one it has, since no client can read it
    is_enabled: bool = True
    retry_limit: int = limits.WEBHOOK_RETRIES_DEFAULT
    timeout_ms: int = limits.WEBHOOK_TIMEOUT_MS_DEFAULT


class DeleteWebhook(Struct, frozen=True, array_like=True, gc=False, tag=52):
    """Remove a webhook with its dead letters."""

    ns: int
    id: bytes


class RecordDeliveries(Struct, frozen=True, array_like=True, gc=False, tag=53):
    """What the dispatcher has done for one webhook since its last report.

    Void when the webhook is gone. The cursor counts only in the epoch the dispatcher worked in.
    """

    ns: int
    id: bytes
    epoch: int
    index: int
    seq: int
    done: list[int]
    delivered: int = 0  # these three are what came on top
    failed: int = 0
    skipped: int = 0
    failures: int = 0
    rounds: int = 0
    suspended_ms: int = 0
    last_status: int = 0
    last_error: str = ""
    last_ms: int = 0
    letters: tuple[DeadLetter, ...] = ()  # given up since the last report
    revived: tuple[int, ...] = ()  # numbers of dead letters that were sent after all
    tries: tuple[Try, ...] = ()  # for the delivery log, oldest first; one per delivery
