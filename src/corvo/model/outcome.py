"""What the machine answers: accepted results, and rejections as values.

A rejection is a normal, replicated result. Its code is one a client can act on; the sentence is
for a person. The log index of the entry travels beside the outcome.
"""

from msgspec import Struct

from corvo.model.bulk import Bulk
from corvo.model.job import Spec

NOT_FOUND = "NOT_FOUND"
INVALID_STATE = "INVALID_STATE"
NOT_ACTIVE = "NOT_ACTIVE"
LEASE_LOST = "LEASE_LOST"
UNIQUE_CONFLICT = "UNIQUE_CONFLICT"
IDEMPOTENCY_MISMATCH = "IDEMPOTENCY_MISMATCH"
DEPENDENCY_NOT_FOUND = "DEPENDENCY_NOT_FOUND"
VALIDATION_ERROR = "VALIDATION_ERROR"
PAYLOAD_TOO_LARGE = "PAYLOAD_TOO_LARGE"
TOO_MANY_QUEUES = "TOO_MANY_QUEUES"
TOO_MANY_SCHEDULES = "TOO_MANY_SCHEDULES"
NAME_TAKEN = "NAME_TAKEN"
STATE_CHANGED = "STATE_CHANGED"
TOO_MANY_WEBHOOKS = "TOO_MANY_WEBHOOKS"
ALREADY_EXISTS = "ALREADY_EXISTS"
INTERNAL_ERROR = "INTERNAL_ERROR"


class Rejected(Struct, frozen=True, gc=False):
    """The command changed nothing."""

    code: str
    message: str
    field: str = ""  # path of the offending field, when there is one
    hint: str = ""
    state: int = -1  # state of the job concerned, when there is one
    holder: bytes = b""  # UNIQUE_CONFLICT: the job that owns the lock


class Enqueued(Struct, frozen=True, array_like=True, gc=False, tag=1):
    """A new job."""

    id: bytes
    state: int


class Duplicate(Struct, frozen=True, array_like=True, gc=False, tag=2):
    """The unique key is taken; this is its owner."""

    id: bytes
    state: int
    result: bytes | None = None  # of a completed owner, in mode window
    is_replaced: bool = False  # mode replace: the owner now has the new payload


class BatchEnqueued(Struct, frozen=True, array_like=True, gc=False, tag=3):
    """All jobs of a call, in its order."""

    results: list[Enqueued | Duplicate]
    batch_id: bytes | None = None


class Replayed(Struct, frozen=True, gc=False):
    """An idempotent call seen before: the answer it got then."""

    answer: Enqueued | Duplicate | BatchEnqueued


class Claim(Struct, frozen=True, gc=False):
    """One job handed to a worker."""

    spec: Spec
    queue: str
    tier: int
    attempt: int
    run: int
    max_attempts: int
    token: int
    lease_ms: int
    created_ms: int
    checkpoint: bytes | None


class Fetched(Struct, frozen=True, gc=False):
    """Claims; `more` when the search stopped at its bound and should be proposed again."""

    claims: list[Claim]
    more: bool = False


class Ended(Struct, frozen=True, gc=False):
    """How an attempt ended: answer to ack, fail, release and snooze."""

    state: int
    next_ms: int = 0  # when the next attempt may start; 0: none
    attempts_remaining: int = 0


BEAT_OK, BEAT_CANCEL, BEAT_LOST = range(3)
BEAT_NAMES = ("ok", "cancel", "lost")


class Beaten(Struct, frozen=True, gc=False):
    """Answer to a heartbeat."""

    status: int
    lease_until_ms: int = 0


class JobChanged(Struct, frozen=True, gc=False):
    """Answer to a change of one job by an operator."""

    status: str
    state: int


class QueueChanged(Struct, frozen=True, gc=False):
    """Answer to a change of a queue."""

    status: str
    active: int = 0
    removed: int = 0
    operation_id: bytes = b""


class LimitChanged(Struct, frozen=True, gc=False):
    """Answer to a change of a named limit."""

    status: str


class ScheduleChanged(Struct, frozen=True, gc=False):
    """Answer to a change of a schedule."""

    status: str
    next_ms: int = 0
    jobs: list[bytes] = []  # made by this command
    skipped: int = 0  # slots it made no job for


class WebhookChanged(Struct, frozen=True, gc=False):
    """Answer to a change of a webhook."""

    status: str


class Swept(Struct, frozen=True, gc=False):
    """How much a sweep moved, and whether it stopped at its bound."""

    count: int
    more: bool = False


class BulkChanged(Struct, frozen=True, gc=False):
    """A bulk operation as it stands after the command; a copy."""

    bulk: Bulk


class Imported(Struct, frozen=True, gc=False):
    """How many records were taken, and which were refused by their position."""

    taken: int
    refused: list[tuple[int, Rejected]]


Outcome = (
    Rejected
    | Enqueued
    | Duplicate
    | BatchEnqueued
    | Replayed
    | Fetched
    | Ended
    | Beaten
    | JobChanged
    | QueueChanged
    | LimitChanged
    | ScheduleChanged
    | WebhookChanged
    | Swept
    | BulkChanged
    | Imported
)
