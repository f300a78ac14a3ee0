"""Operating errors: what can go wrong around the machine, each with a code a client can act on.

    CorvoError                    base: code, HTTP status, sentence, hint
    ├── RequestError              400  the request cannot be understood or is not allowed
    │   (PARSE_ERROR, VALIDATION_ERROR, NOT_SUPPORTED, CONFIRMATION_REQUIRED, ...)
    ├── OverloadedError           429  admission is full; try again after `retry_after_ms`
    ├── UnavailableError          503  starting, draining, disk full
    ├── CorruptionError           -    bytes on disk are not what was written; the start is refused
    └── StorageError              -    the disk or the store failed; the process stops

Rejections (duplicate, lease lost, wrong state) are not errors: they are values in `model.outcome`.
An impossible state is neither: it is an `assert`, and the process stops.
"""


class CorvoError(Exception):
    """Something outside the rules went wrong; carries what a client or an operator needs."""

    code = "INTERNAL_ERROR"
    status = 500

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        field: str | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.field = field
        self.hint = hint
        if code is not None:
            self.code = code


class RequestError(CorvoError):
    """The request is malformed, too large or asks for what does not exist."""

    code = "VALIDATION_ERROR"
    status = 400

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        status: int = 400,
        field: str | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message, code=code, field=field, hint=hint)
        self.status = status


class OverloadedError(CorvoError):
    """The server has as much work queued as it admits; retrying later helps."""

    code = "OVERLOADED"
    status = 429

    def __init__(self, message: str, *, retry_after_ms: int) -> None:
        super().__init__(message, hint=f"retry after {retry_after_ms} ms")
        self.retry_after_ms = retry_after_ms


class UnavailableError(CorvoError):
    """The server cannot take this request now: it is starting, draining or out of disk."""

    code = "DRAINING"
    status = 503


class CorruptionError(CorvoError):
    """Bytes on disk differ from what was written; nothing is cut and the start is refused."""

    code = "CORRUPTION"


class StorageError(CorvoError):
    """A write, sync or flush failed; the process stops, since memory may be ahead of disk."""

    code = "STORAGE_FAILED"
