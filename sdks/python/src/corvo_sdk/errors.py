"""What can go wrong with a call, as exceptions that carry the server's code and hint.

    CorvoError                      code, message, hint, status, field, retry_after_ms, request_id
    ├── ValidationError             400, 422   the request is malformed or not allowed
    │   ├── NotSupportedError                  this server does not have the feature
    │   └── ConfirmationRequiredError          the call destroys data and was not confirmed
    ├── UnauthorizedError           401
    ├── ForbiddenError              403
    ├── NotFoundError               404
    ├── ConflictError               409
    │   ├── InvalidStateError                  not from the state the job is in
    │   ├── NotActiveError                     nobody works on the job
    │   ├── LeaseLostError                     somebody else works on the job
    │   ├── UniqueConflictError                another job holds the unique key
    │   ├── IdempotencyMismatchError           the key was used for another body
    │   ├── DependencyNotFoundError
    │   └── AlreadyExistsError                 an id or a name is taken
    ├── PayloadTooLargeError        413
    ├── OverloadedError             429        trying again later helps
    ├── UnavailableError            503        trying again later, or elsewhere, helps
    │   └── ViewUnavailableError               only the search index is away
    ├── InternalError               500        a bug in the server
    ├── ConnectionFailedError       -          there was no answer
    │   └── DeadlineExceededError   -          there was none in time
    └── ProtocolError               -          the answer is not what a Corvo server says

A code this version has never heard of gives the class of its status.
"""

from collections.abc import Mapping
from typing import Final

import msgspec
from msgspec import Struct


class CorvoError(Exception):
    """A call failed; `code` is for programs and never renamed, `hint` says what to do."""

    code: str = "UNKNOWN"

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        status: int = 0,
        hint: str | None = None,
        field: str | None = None,
        retry_after_ms: int | None = None,
        request_id: str | None = None,
        state: str | None = None,
        unique_job_id: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        if code is not None:
            self.code = code
        self.status = status
        self.hint = hint
        self.field = field
        self.retry_after_ms = retry_after_ms
        self.request_id = request_id
        self.state = state
        self.unique_job_id = unique_job_id

    def __str__(self) -> str:
        text = f"{self.code}: {self.message}"
        if self.field:
            text += f" (field {self.field})"
        return f"{text} - {self.hint}" if self.hint else text


class ValidationError(CorvoError):
    """The request is malformed, or asks for what is not allowed."""

    code = "VALIDATION_ERROR"


class NotSupportedError(ValidationError):
    """A field or value belongs to a feature this server does not have."""

    code = "NOT_SUPPORTED"


class ConfirmationRequiredError(ValidationError):
    """The call destroys data and was not confirmed."""

    code = "CONFIRMATION_REQUIRED"


class UnauthorizedError(CorvoError):
    """Credentials or a signature are missing, wrong or too old."""

    code = "UNAUTHORIZED"


class ForbiddenError(CorvoError):
    """The credentials are known and not enough."""

    code = "FORBIDDEN"


class NotFoundError(CorvoError):
    """There is no such job, queue, limit, batch, schedule, webhook or route."""

    code = "NOT_FOUND"


class ConflictError(CorvoError):
    """The call does not fit the state things are in."""

    code = "CONFLICT"


class InvalidStateError(ConflictError):
    """The job is in a state from which this is not possible; `state` names it."""

    code = "INVALID_STATE"


class NotActiveError(ConflictError):
    """The job is not being worked on, so nothing can be reported about it."""

    code = "NOT_ACTIVE"


class LeaseLostError(ConflictError):
    """The lease is not the current one: stop, the outcome of this attempt no longer counts."""

    code = "LEASE_LOST"


class UniqueConflictError(ConflictError):
    """Another job holds the unique key; `unique_job_id` names it."""

    code = "UNIQUE_CONFLICT"


class IdempotencyMismatchError(ConflictError):
    """The idempotency key was used before, with a different body."""

    code = "IDEMPOTENCY_MISMATCH"


class DependencyNotFoundError(ConflictError):
    """A job named in depends_on does not exist."""

    code = "DEPENDENCY_NOT_FOUND"


class AlreadyExistsError(ConflictError):
    """Something with this id or name exists already."""

    code = "ALREADY_EXISTS"


class PayloadTooLargeError(CorvoError):
    """The body, or a document inside it, is larger than allowed."""

    code = "PAYLOAD_TOO_LARGE"


class OverloadedError(CorvoError):
    """The server has as much work queued as it admits."""

    code = "OVERLOADED"


class UnavailableError(CorvoError):
    """The server can not take this call now: it is starting, draining or out of disk."""

    code = "UNAVAILABLE"


class ViewUnavailableError(UnavailableError):
    """The search index is away or behind; everything else goes on."""

    code = "VIEW_DOWN"


class InternalError(CorvoError):
    """A bug in the server; `request_id` finds it in the server's log."""

    code = "INTERNAL_ERROR"


class ConnectionFailedError(CorvoError):
    """There was no answer. `was_sent`: the server may have acted on the request all the same."""

    code = "CONNECTION_FAILED"

    def __init__(self, message: str, *, was_sent: bool, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.was_sent = was_sent


class DeadlineExceededError(ConnectionFailedError):
    """There was no answer in time."""

    code = "DEADLINE_EXCEEDED"


class ProtocolError(CorvoError):
    """The answer is not what a Corvo server says; perhaps something else listens there."""

    code = "PROTOCOL_ERROR"


class _Refusal(Struct):
    """The body of a refusal; whatever is of another form counts as absent."""

    error: str = ""
    code: str = ""
    field: str | None = None
    hint: str | None = None
    state: str | None = None
    unique_job_id: str | None = None
    retry_after_ms: int | None = None
    request_id: str | None = None


CLASS_OF_CODE: Final[dict[str, type[CorvoError]]] = {
    "PARSE_ERROR": ValidationError,
    "VALIDATION_ERROR": ValidationError,
    "NOT_SUPPORTED": NotSupportedError,
    "CONFIRMATION_REQUIRED": ConfirmationRequiredError,
    "SIGNATURE_INVALID": UnauthorizedError,
    "UNAUTHORIZED": UnauthorizedError,
    "FORBIDDEN": ForbiddenError,
    "NOT_FOUND": NotFoundError,
    "METHOD_NOT_ALLOWED": ValidationError,
    "REQUEST_TIMEOUT": ValidationError,
    "INVALID_STATE": InvalidStateError,
    "STATE_CHANGED": InvalidStateError,
    "NOT_ACTIVE": NotActiveError,
    "LEASE_LOST": LeaseLostError,
    "UNIQUE_CONFLICT": UniqueConflictError,
    "IDEMPOTENCY_MISMATCH": IdempotencyMismatchError,
    "DEPENDENCY_NOT_FOUND": DependencyNotFoundError,
    "ALREADY_EXISTS": AlreadyExistsError,
    "NAME_TAKEN": AlreadyExistsError,
    "TOO_MANY_QUEUES": ConflictError,
    "TOO_MANY_SCHEDULES": ConflictError,
    "TOO_MANY_WEBHOOKS": ConflictError,
    "PAYLOAD_TOO_LARGE": PayloadTooLargeError,
    "UNSUPPORTED_MEDIA_TYPE": ValidationError,
    "EXPECTATION_FAILED": ValidationError,
    "HEADERS_TOO_LARGE": ValidationError,
    "OVERLOADED": OverloadedError,
    "INTERNAL_ERROR": InternalError,
    "STARTING": UnavailableError,
    "DRAINING": UnavailableError,
    "DISK_FULL": UnavailableError,
    "VIEW_BEHIND": ViewUnavailableError,
    "VIEW_DOWN": ViewUnavailableError,
    "QUERY_TIMEOUT": ViewUnavailableError,
}

_CLASS_OF_STATUS: Final[dict[int, type[CorvoError]]] = {
    401: UnauthorizedError,
    403: ForbiddenError,
    404: NotFoundError,
    409: ConflictError,
    413: PayloadTooLargeError,
    429: OverloadedError,
    502: UnavailableError,
    503: UnavailableError,
    504: UnavailableError,
}

_decode: Final = msgspec.json.Decoder(_Refusal).decode


def error_of(status: int, headers: Mapping[str, str], body: bytes) -> CorvoError:
    """Make the exception for an answer that refuses; header names are lower case."""
    try:
        refusal = _decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        refusal = _Refusal()  # a proxy answered, or something that is no Corvo server
    kind = CLASS_OF_CODE.get(refusal.code) or _class_of(status)
    retry_after_ms = refusal.retry_after_ms
    if retry_after_ms is None:
        retry_after_ms = _seconds_ms(headers.get("retry-after", ""))
    return kind(
        refusal.error or f"the server answered with status {status}",
        code=refusal.code or f"HTTP_{status}",
        status=status,
        hint=refusal.hint,
        field=refusal.field,
        retry_after_ms=retry_after_ms,
        request_id=refusal.request_id or headers.get("x-request-id"),
        state=refusal.state,
        unique_job_id=refusal.unique_job_id,
    )


def _class_of(status: int) -> type[CorvoError]:
    known = _CLASS_OF_STATUS.get(status)
    if known is not None:
        return known
    if 400 <= status < 500:
        return ValidationError
    return InternalError if status >= 500 else ProtocolError


def _seconds_ms(text: str) -> int | None:
    # The form with a date is not used by Corvo; from a proxy it counts as absent.
    return int(text) * 1_000 if text.isdecimal() and len(text) < 8 else None
