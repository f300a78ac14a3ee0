r"""Answers as bytes: preformatted heads, lengths, and the JSON error envelope.

Format: an answer of the fast lane is, in this order,

    HTTP/1.1 201 Created\r\ndate: ...\r\ncontent-type: application/json\r\n   one string per status
    x-corvo-index: 5\r\n                                                      the handler's `extra`
    connection: close\r\n                                                     only when it will be
    content-length: 17\r\n\r\n                                                one string per length
    {"status":"ok"...}

204 has neither content-type nor content-length. The date is renewed once a second, by the sweep.
"""

from email.utils import formatdate
from http import HTTPStatus

import msgspec

CLOSE_LINE = b"connection: close\r\n"
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
JSON_TYPE = b"application/json"

_NO_CONTENT = 204
_LENGTH_COUNT = 2048
# Cost: heads and lengths are looked up and joined; nothing is formatted for a common answer.
_LENGTH_LINES = tuple(b"content-length: %d\r\n\r\n" % size for size in range(_LENGTH_COUNT))
_COMMON_STATUSES = (
    200,
    201,
    202,
    204,
    400,
    404,
    405,
    408,
    409,
    413,
    415,
    417,
    422,
    429,
    431,
    500,
    503,
)


class ReplyHeads:
    """Status lines with the headers every answer carries, ready to be written."""

    def __init__(self, now_s: float) -> None:
        self.by_status: dict[int, bytes] = {}
        self._date_line = b""
        self.date: bytes = b""
        self.refresh(now_s)

    def refresh(self, now_s: float) -> None:
        """Renew the date; a second is the header's resolution."""
        self.date = formatdate(now_s, usegmt=True).encode("ascii")
        self._date_line = b"date: " + self.date + b"\r\n"
        self.by_status = {status: self._head(status) for status in _COMMON_STATUSES}

    def render(self, status: int, body: bytes, extra: bytes) -> bytes:
        """Return the whole answer."""
        head = self.by_status.get(status)
        size = len(body)
        if head is not None and size < _LENGTH_COUNT and status != _NO_CONTENT:
            return b"".join((head, extra, _LENGTH_LINES[size], body))
        if head is None:
            head = self.by_status[status] = self._head(status)
        if status == _NO_CONTENT:
            assert size == 0, "204 has no body"
            return b"".join((head, extra, b"\r\n"))
        return b"".join((head, extra, b"content-length: %d\r\n\r\n" % size, body))

    def _head(self, status: int) -> bytes:
        line = b"HTTP/1.1 %d %s\r\n" % (status, HTTPStatus(status).phrase.encode("ascii"))
        if status == _NO_CONTENT:
            return line + self._date_line
        return line + self._date_line + b"content-type: " + JSON_TYPE + b"\r\n"


def is_json(content_type: bytes) -> bool:
    """Return whether a Content-Type header announces JSON, whatever its parameters."""
    return content_type.partition(b";")[0].strip().lower() == JSON_TYPE


class Refusal(msgspec.Struct, frozen=True):
    """An answer that the transport gives itself, without asking a handler."""

    status: int
    code: str
    message: str
    hint: str | None = None

    def body(self) -> bytes:
        """Return the error envelope."""
        envelope = {"error": self.message, "code": self.code}
        if self.hint is not None:
            envelope["hint"] = self.hint
        return msgspec.json.encode(envelope)


MALFORMED = Refusal(400, "PARSE_ERROR", "The request is not valid HTTP/1.1.")
TRUNCATED = Refusal(
    400,
    "PARSE_ERROR",
    "The connection's sending side was closed in the middle of a request.",
    "Check Content-Length against the bytes that were sent.",
)
CONNECT_REFUSED = Refusal(400, "PARSE_ERROR", "CONNECT is not supported.")
TIMED_OUT = Refusal(408, "REQUEST_TIMEOUT", "The request took too long to arrive.")
NOT_JSON = Refusal(
    415,
    "UNSUPPORTED_MEDIA_TYPE",
    "The body must be JSON.",
    "Send the header Content-Type: application/json.",
)
UNKNOWN_EXPECTATION = Refusal(
    417, "EXPECTATION_FAILED", "Only the expectation 100-continue can be met."
)
TOO_MANY_PIPELINED = Refusal(
    503,
    "OVERLOADED",
    "Too many unanswered requests on one connection.",
    "Read answers before sending more, or use several connections.",
)


def head_too_large(bytes_max: int) -> Refusal:
    """Return the refusal of a request line and headers beyond the limit."""
    return Refusal(431, "HEADERS_TOO_LARGE", f"Request line and headers exceed {bytes_max} bytes.")


def body_too_large(bytes_max: int) -> Refusal:
    """Return the refusal of a body beyond its route's limit."""
    return Refusal(
        413,
        "PAYLOAD_TOO_LARGE",
        f"The body exceeds {bytes_max} bytes.",
        "Send less per request; large payloads belong into object storage, with a reference here.",
    )


def internal_error(request_id: str) -> tuple[bytes, bytes]:
    """Return body and header line of the answer to a request whose handler failed."""
    body = msgspec.json.encode(
        {
            "error": "The server failed to handle this request; the failure was recorded.",
            "code": "INTERNAL_ERROR",
            "hint": f"Report this request id: {request_id}",
            "request_id": request_id,
        }
    )
    return body, b"x-request-id: " + request_id.encode("ascii") + b"\r\n"
