"""Traces that go through a job: from whoever enqueues it to the handler that runs it.

OpenTelemetry is never imported for those who do not use it: without its API loaded there can be no
current span, so an enqueue costs one look into `sys.modules`.
"""

import sys
from typing import Any, cast


def current_trace() -> dict[str, str] | None:
    """Give the trace context of the caller as a job carries it; None outside of a span."""
    if "opentelemetry.trace" not in sys.modules:
        return None
    from opentelemetry import trace  # noqa: PLC0415 - only where it is loaded already
    from opentelemetry.trace.propagation.tracecontext import (  # noqa: PLC0415
        TraceContextTextMapPropagator,
    )

    if not trace.get_current_span().get_span_context().is_valid:
        return None
    carrier: dict[str, str] = {}
    cast("Any", TraceContextTextMapPropagator()).inject(carrier)
    return carrier or None
