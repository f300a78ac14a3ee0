"""An endpoint of somebody else: a real HTTP server that keeps what it got and answers as told."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import msgspec


class Got(msgspec.Struct):
    """One request as it arrived."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body as a value."""
        return msgspec.json.decode(self.body)

    @property
    def type(self) -> str:
        """Which event it is about."""
        return self.json["event"]["type"]

    @property
    def seq(self) -> int:
        """The number of the event."""
        return self.json["event"]["seq"]

    @property
    def delivery_id(self) -> str:
        """Which delivery it is."""
        return self.json["delivery_id"]


class Receiver:
    """Requests in the order they came; `status` is what is answered."""

    def __init__(self) -> None:
        self.requests: list[Got] = []
        self.status = 200
        self.location = ""
        self.gate = threading.Event()  # answers wait for it
        self.gate.set()
        self.active_count = 0
        self.active_max = 0
        self._lock = threading.Condition()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                receiver._take(self)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self._http.block_on_close = False
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    @property
    def port(self) -> int:
        return self._http.server_address[1]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook?x=1"

    def _take(self, request: BaseHTTPRequestHandler) -> None:
        body = request.rfile.read(int(request.headers.get("content-length", 0)))
        headers = {name.lower(): value for name, value in request.headers.items()}
        with self._lock:
            self.requests.append(Got(request.path, headers, body))
            self.active_count += 1
            self.active_max = max(self.active_max, self.active_count)
            self._lock.notify_all()
        self.gate.wait(20)
        with self._lock:
            self.active_count -= 1
        try:
            request.send_response(self.status)
            if self.location:
                request.send_header("location", self.location)
            request.send_header("content-length", "2")
            request.end_headers()
            request.wfile.write(b"ok")
        except OSError:
            pass  # The sender has given up.

    def wait_until(self, fact: Callable[[], bool]) -> None:
        """Wait for requests until a fact about them holds."""
        with self._lock:
            assert self._lock.wait_for(fact, 20), "it did not come"

    @property
    def types(self) -> list[str]:
        """Names of the events that came, in order."""
        return [got.type for got in self.requests]

    @property
    def seqs(self) -> list[int]:
        """Numbers of the events that came, in order."""
        return [got.seq for got in self.requests]

    def close(self) -> None:
        """Answer nobody any more."""
        self.gate.set()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()


@contextmanager
def receiving() -> Iterator[Receiver]:
    """An endpoint for one test."""
    receiver = Receiver()
    try:
        yield receiver
    finally:
        receiver.close()
