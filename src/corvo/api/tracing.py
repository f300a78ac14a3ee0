"""Trace context of the W3C: taken from headers on enqueue, kept with the job, given to the worker.

A job's `trace` is whatever document the producer sends; without one, the header `traceparent` (and
`tracestate`) becomes `{"traceparent": …, "tracestate": …}`. A header that is not well formed is
ignored, as the standard wants it.
"""

import re
from collections.abc import Callable
from typing import Any, Final

from msgspec import Raw

from corvo.api import wire
from corvo.api.http.exchange import Exchange, Handler
from corvo.api.render import encode

TRACE_PARENT: Final = b"traceparent"
TRACE_STATE: Final = b"tracestate"

Note = Callable[[str, str], None]

_PARENT: Final = re.compile(
    rb"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}"
)
_STATE: Final = re.compile(rb"[\x20-\x7e]{1,512}")


def adopt(jobs: list[Any], exchange: Exchange, parent: bytes) -> None:
    """Give the context of a request to those of its jobs that bring none."""
    if not _PARENT.fullmatch(parent):
        return
    members = {"traceparent": parent.decode("ascii")}
    state = exchange.header(TRACE_STATE)
    if state is not None and _STATE.fullmatch(state):
        members["tracestate"] = state.decode("ascii")
    document = Raw(encode(members))
    for job in jobs:
        if job.trace is wire.ABSENT:
            job.trace = document


def noting(handler: Handler, note: Note) -> Handler:
    """Tell `note` of the context a worker reports in, before its report is handled."""

    def noted(exchange: Exchange) -> None:
        parent = exchange.header(TRACE_PARENT)
        if parent is not None and _PARENT.fullmatch(parent):
            note(exchange.argument, parent.decode("ascii"))
        handler(exchange)

    return noted
