"""The one table of error codes, and the envelope every refusal is answered in.

    {"error": sentence, "code": UPPER_SNAKE, "field"?: path, "hint"?: what to do,
     "state"?: of the job concerned, "unique_job_id"?: who holds the lock, "retry_after_ms"?}

A code is a promise to clients: it is never renamed. docs/reference/errors.md lists the same codes,
and a test compares the two with `model.outcome`.
"""

from typing import Final

from msgspec import Struct
from msgspec.json import Encoder

from corvo.errors import CorvoError, OverloadedError
from corvo.model.ids import JOB, render_id
from corvo.model.job import STATE_NAMES
from corvo.model.outcome import Rejected


class Code(Struct, frozen=True):
    """One code: its HTTP status, what it means, what a client should do."""

    status: int
    meaning: str
    hint: str = ""
    retry_after_ms: int = 0  # trying the same request again after this long can help


CODES: Final[dict[str, Code]] = {
    "PARSE_ERROR": Code(
        400, "The request is not well-formed HTTP or JSON.", "Send one JSON object."
    ),
    "VALIDATION_ERROR": Code(400, "A field is missing, of the wrong type or out of range."),
    "NOT_SUPPORTED": Code(
        400,
        "A field or value belongs to a feature this server does not have.",
        "Leave the field out; GET /api/v1/info lists the features.",
    ),
    "CONFIRMATION_REQUIRED": Code(
        400, "The call destroys data and was not confirmed.", "Add ?confirm=true."
    ),
    "SIGNATURE_INVALID": Code(
        401,
        "The queue takes signed requests only, and the signature is missing, wrong or too old.",
        "Sign timestamp, a dot and the body with the queue's webhook_secret.",
    ),
    "NOT_FOUND": Code(
        404, "There is no such job, queue, limit, batch, schedule, webhook or route."
    ),
    "METHOD_NOT_ALLOWED": Code(
        405, "The route exists, but not with this method.", "The Allow header lists the methods."
    ),
    "REQUEST_TIMEOUT": Code(408, "The request took too long to arrive.", "Send it in one go."),
    "INVALID_STATE": Code(409, "The job is in a state from which this is not possible."),
    "STATE_CHANGED": Code(
        409,
        "The job is no longer in the state the request expected.",
        "Read the job again and decide anew.",
    ),
    "NOT_ACTIVE": Code(
        409,
        "The job is not being worked on, so it cannot be acknowledged, failed or given back.",
        "Fetch the job first; it may have been settled, or its lease may have run out.",
    ),
    "LEASE_LOST": Code(
        409,
        "The lease token is not the current one: the job now belongs to somebody else.",
        "Stop working on it; the outcome of this attempt no longer counts.",
    ),
    "UNIQUE_CONFLICT": Code(
        409, "Another job holds the unique key.", "unique_job_id names the holder."
    ),
    "IDEMPOTENCY_MISMATCH": Code(
        409,
        "The idempotency key was used before, with a different body.",
        "Use a new key for a new request.",
    ),
    "DEPENDENCY_NOT_FOUND": Code(
        409, "A job named in depends_on does not exist.", "Enqueue the parent first."
    ),
    "ALREADY_EXISTS": Code(
        409,
        "Something with this id or name exists already.",
        "An import never touches what exists; delete it first, or leave the record out.",
    ),
    "TOO_MANY_QUEUES": Code(
        409,
        "The server has as many queues as it can hold.",
        "Delete unused queues, or use tags, groups or limit keys instead of queues.",
    ),
    "TOO_MANY_SCHEDULES": Code(
        409, "The server has as many schedules as it can hold.", "Delete unused schedules."
    ),
    "NAME_TAKEN": Code(
        409, "Something of this kind already has the name.", "Choose another, or change that one."
    ),
    "TOO_MANY_WEBHOOKS": Code(
        409, "The server has as many webhooks as it can hold.", "Delete those not used any more."
    ),
    "PAYLOAD_TOO_LARGE": Code(
        413,
        "The body, or a document inside it, is larger than allowed.",
        "Store large data elsewhere and send a reference to it.",
    ),
    "UNSUPPORTED_MEDIA_TYPE": Code(
        415, "The body is not declared as JSON.", "Send Content-Type: application/json."
    ),
    "EXPECTATION_FAILED": Code(
        417, "The Expect header asks for something else than 100-continue.", "Leave it out."
    ),
    "HEADERS_TOO_LARGE": Code(431, "The request line and headers are larger than allowed."),
    "OVERLOADED": Code(
        429,
        "The server has as much work queued as it admits.",
        "Try again after Retry-After; retry_after_ms is the finer figure.",
        retry_after_ms=1_000,
    ),
    "INTERNAL_ERROR": Code(
        500, "A bug in the server.", "Report it with the request id and the server's log."
    ),
    "STARTING": Code(
        503, "The server is starting.", "Try again after Retry-After.", retry_after_ms=1_000
    ),
    "DRAINING": Code(
        503,
        "The server is shutting down; it takes results, but no new work.",
        "Try again after Retry-After, or ask another server.",
        retry_after_ms=5_000,
    ),
    "DISK_FULL": Code(
        503,
        "The disk is nearly full; results are accepted, new jobs are not.",
        "Free space on the server's data directory.",
        retry_after_ms=10_000,
    ),
    "VIEW_BEHIND": Code(
        503,
        "The search index has not yet reached the index asked for.",
        "Try again after Retry-After.",
        retry_after_ms=1_000,
    ),
    "VIEW_DOWN": Code(
        503,
        "The search index is being restarted.",
        "Try again after Retry-After.",
        retry_after_ms=1_000,
    ),
    "QUERY_TIMEOUT": Code(
        503,
        "The query took longer than it may.",
        "Narrow it down: name a queue, a state or a time.",
        retry_after_ms=1_000,
    ),
}

_INTERNAL: Final = CODES["INTERNAL_ERROR"]
_encode: Final = Encoder().encode


def envelope(
    code: str,
    message: str = "",
    *,
    field: str | None = None,
    hint: str | None = None,
    state: int = -1,
    holder: bytes = b"",
    retry_after_ms: int = 0,
    request_id: str = "",
) -> bytes:
    """Render the body of a refusal."""
    known = CODES.get(code, _INTERNAL)
    members: dict[str, str | int] = {"error": message or known.meaning, "code": code}
    if field:
        members["field"] = field
    if hint or known.hint:
        members["hint"] = hint or known.hint
    if state >= 0:
        members["state"] = STATE_NAMES[state]
    if holder:
        members["unique_job_id"] = render_id(JOB, holder)
    if retry_after_ms:
        members["retry_after_ms"] = retry_after_ms
    if request_id:
        members["request_id"] = request_id
    return _encode(members)


def of_rejection(rejected: Rejected) -> tuple[int, bytes]:
    """Status and body for what the machine refused."""
    body = envelope(
        rejected.code,
        rejected.message,
        field=rejected.field,
        hint=rejected.hint,
        state=rejected.state,
        holder=rejected.holder,
    )
    return CODES.get(rejected.code, _INTERNAL).status, body


def of_error(error: CorvoError) -> tuple[int, bytes, bytes]:
    """Status, body and header lines for what the edge or the engine refused."""
    known = CODES.get(error.code, _INTERNAL)
    retry_after_ms = known.retry_after_ms
    if isinstance(error, OverloadedError):
        retry_after_ms = max(1, error.retry_after_ms)
    body = envelope(
        error.code,
        error.message,
        field=error.field,
        hint=error.hint,
        retry_after_ms=retry_after_ms,
    )
    return known.status, body, retry_header(retry_after_ms)


def retry_header(retry_after_ms: int) -> bytes:
    """Header line for a retry time: whole seconds, rounded up, as the standard wants them."""
    return b"retry-after: %d\r\n" % -(-retry_after_ms // 1_000) if retry_after_ms else b""
