"""What a code of the API is in gRPC and in Connect."""

from typing import Final

from corvo.api.errors import CODES

# Codes whose status alone does not tell what to do.
_NAMES: Final = {
    "NOT_SUPPORTED": "unimplemented",
    "LEASE_LOST": "aborted",
    "STATE_CHANGED": "aborted",
    "UNIQUE_CONFLICT": "already_exists",
    "IDEMPOTENCY_MISMATCH": "already_exists",
    "ALREADY_EXISTS": "already_exists",
    "TOO_MANY_QUEUES": "resource_exhausted",
}
_BY_STATUS: Final = {
    400: "invalid_argument",
    401: "unauthenticated",
    404: "not_found",
    408: "deadline_exceeded",
    409: "failed_precondition",
    413: "resource_exhausted",
    429: "resource_exhausted",
    503: "unavailable",
}
HTTP_STATUS: Final = {
    "invalid_argument": 400,
    "failed_precondition": 400,
    "unauthenticated": 401,
    "not_found": 404,
    "aborted": 409,
    "already_exists": 409,
    "resource_exhausted": 429,
    "internal": 500,
    "unimplemented": 501,
    "unavailable": 503,
    "deadline_exceeded": 504,
}


def status_name(code: str) -> str:
    """Name the status of a code, as Connect spells it; gRPC has the same in capitals."""
    found = _NAMES.get(code)
    if found is not None:
        return found
    known = CODES.get(code)
    return _BY_STATUS.get(known.status, "internal") if known is not None else "internal"
