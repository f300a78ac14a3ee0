"""The health port: `/healthz`, `/metrics` and `/schemas`, answered by threads of their own.

It must answer exactly when the loop does not, so it uses neither the loop nor the link. Everything
it reads are single attributes. Requests are read in at most two seconds, and at most eight at once.
"""

import json
import os
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final, Protocol

from corvo_sdk.worker.flights import Flights
from corvo_sdk.worker.heart import INTERVAL_S_MAX, Heart
from corvo_sdk.worker.reload import RELOADED
from corvo_sdk.worker.statistics import Figures, render
from corvo_sdk.worker.watch import Watch

LAG_S_MAX: Final = 5.0
AWAY_S_MAX: Final = 60.0  # without an answer of the server; a restart takes less
REQUESTS_MAX: Final = 8
REQUEST_S_MAX: Final = 2.0


class Subject(Protocol):
    """What is looked at."""

    @property
    def figures(self) -> Figures: ...
    @property
    def flights(self) -> Flights: ...
    @property
    def is_ready(self) -> bool: ...
    @property
    def is_draining(self) -> bool: ...
    def schemas(self) -> dict[str, Any]: ...


class Health:
    """Says how a worker does."""

    def __init__(
        self,
        subject: Subject,
        heart: Heart,
        watch: Watch,
        *,
        lag_s_max: float = LAG_S_MAX,
        away_s_max: float = AWAY_S_MAX,
    ) -> None:
        self._subject = subject
        self._heart = heart
        self._watch = watch
        self._lag_s_max = lag_s_max
        self._away_s_max = away_s_max
        self._server: _Server | None = None
        self.port = 0

    def start(self, host: str, port: int) -> None:
        """Listen; 0 is any free port. Raises OSError when the port is taken."""
        self._server = _Server((host, port), self)
        self.port = int(self._server.server_address[1])
        serving = threading.Thread(
            target=self._server.serve_forever, args=(0.2,), name="corvo-health", daemon=True
        )
        serving.start()

    def stop(self) -> None:
        if self._server is not None:
            server, self._server = self._server, None
            server.shutdown()
            server.server_close()

    def problem(self) -> str | None:
        """What is wrong, in a word; None when all is well."""
        if self._watch.lag_s > self._lag_s_max:
            return "blocked"
        if self.away_s > self._away_s_max:
            return "unreachable"
        if self._subject.is_draining:
            return "draining"
        return None if self._subject.is_ready else "starting"

    @property
    def away_s(self) -> float:
        """How long the server has not answered, beyond the time nobody asked it."""
        silent_s = time.monotonic() - self._heart.reached_at_s
        return max(0.0, silent_s - INTERVAL_S_MAX)

    def healthz(self) -> tuple[int, dict[str, Any]]:
        problem = self.problem()
        body: dict[str, Any] = {
            "status": problem or "ok",
            "jobs": len(self._subject.flights),
            "loop_lag_s": round(self._watch.lag_s, 3),
            "server_away_s": round(self.away_s, 3),
        }
        if problem == "blocked":
            body["blocked_by"] = self._watch.blocked_by
        return (503 if problem else 200), body

    def schemas(self) -> dict[str, Any]:
        """What the tasks of the worker take, as JSON Schema by name."""
        return self._subject.schemas()

    def metrics(self) -> str:
        watch, heart, subject = self._watch, self._heart, self._subject
        gauges = {
            "jobs_in_hand": len(subject.flights),
            "loop_lag_seconds": watch.lag_s,
            "loop_lag_seconds_max": watch.lag_s_max,
            "loop_blocked_warnings": watch.warnings_count,
            "heartbeats": heart.beats_count,
            "heartbeat_failures": heart.failures_count,
            "server_away_seconds": self.away_s,
            "draining": float(subject.is_draining),
        }
        return render(subject.figures, gauges)


class _Server(ThreadingHTTPServer):
    """At most a few requests at once; more are hung up on."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 16

    def __init__(self, address: tuple[str, int], health: Health) -> None:
        self.health = health
        # The worker before a reload may still have the port for a moment.
        self.allow_reuse_port = RELOADED in os.environ
        self._free = threading.BoundedSemaphore(REQUESTS_MAX)
        super().__init__(address, _Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        if self._free.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A probe that hangs up is none of the worker's business."""


class _Handler(BaseHTTPRequestHandler):
    timeout = REQUEST_S_MAX

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        assert isinstance(self.server, _Server)
        health = self.server.health
        if path == "/healthz":
            status, body = health.healthz()
            self._reply(status, "application/json", json.dumps(body))
        elif path == "/metrics":
            self._reply(200, "text/plain; version=0.0.4", health.metrics())
        elif path == "/schemas":
            self._reply(200, "application/json", json.dumps(health.schemas()))
        else:
            self._reply(404, "application/json", '{"error":"/healthz, /metrics or /schemas"}')

    def _reply(self, status: int, media: str, text: str) -> None:
        body = text.encode()
        self.send_response(status)
        self.send_header("content-type", media)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the library's
        """A probe every few seconds is not worth a line."""
