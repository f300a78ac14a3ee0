"""A server that misbehaves on demand: it drops, stalls, refuses, or passes on and then drops."""

import http.client
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import msgspec


class Seen(msgspec.Struct):
    """A request that arrived."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class RudeServer:
    """Does one thing of its script per request, and passes requests on once the script is over.

    The words: `drop` (read, answer nothing), `lose` (pass on, but drop the answer), `half` (pass
    on, send half of the answer), `stall` (never answer), `dribble` (a byte now and then),
    `cut` (begin a stream and drop it), `pass` (pass on), or a tuple
    (status, headers, body).
    """

    def __init__(self, backend_port: int = 0) -> None:
        self.script: list[Any] = []
        self.seen: list[Seen] = []
        self.backend_port = backend_port
        self._released = threading.Event()
        self._threads: list[threading.Thread] = []
        self._sockets: list[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._accepting = threading.Thread(target=self._accept, daemon=True)
        self._accepting.start()

    @property
    def connections_count(self) -> int:
        return len(self._sockets)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def close(self) -> None:
        self._released.set()
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._accepting.join()
        for connection in self._sockets:
            _end(connection)
        for thread in self._threads:
            thread.join()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self._sockets.append(connection)
            thread = threading.Thread(target=self._serve, args=(connection,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, connection.makefile("rb") as reader:
            while (request := _read(reader)) is not None:
                self.seen.append(request)
                action = self.script.pop(0) if self.script else "pass"
                if not self._act(connection, request, action):
                    _end(connection)
                    return

    def _act(self, connection: socket.socket, request: Seen, action: Any) -> bool:
        if isinstance(action, tuple):
            connection.sendall(_rendered(*action))
            return True
        if action == "dribble":
            connection.sendall(b"HTTP/1.1 200 X\r\ncontent-length: 1000\r\n\r\n")
            while not self._released.wait(0.02):
                try:
                    connection.sendall(b" ")
                except OSError:
                    return False
            return False
        if action == "cut":
            head = b"HTTP/1.1 200 X\r\ntransfer-encoding: chunked\r\n\r\n"
            connection.sendall(head + b"5\r\nhello\r\n")
            return False
        if action == "drop":
            return False
        if action == "stall":
            self._released.wait()
            return False
        answer = self._pass_on(request)
        if action == "lose":
            return False
        if action == "half":
            connection.sendall(answer[: len(answer) - 5])
            return False
        connection.sendall(answer)
        return True

    def _pass_on(self, request: Seen) -> bytes:
        backend = http.client.HTTPConnection("127.0.0.1", self.backend_port, timeout=30)
        dropped = {"host", "content-length", "connection"}
        headers = {name: value for name, value in request.headers.items() if name not in dropped}
        backend.request(request.method, request.path, request.body or None, headers)
        response = backend.getresponse()
        body = response.read()
        backend.close()
        kept = {
            name: value for name, value in response.getheaders() if name.startswith(("x-", "c"))
        }
        return _rendered(response.status, kept, body)


def refusal(status: int, code: str, **members: Any) -> tuple[int, dict[str, str], bytes]:
    """A refusal in the server's own words."""
    body = json.dumps({"error": "no", "code": code} | members).encode()
    return status, {"content-type": "application/json"}, body


def _read(reader: Any) -> Seen | None:
    line = reader.readline()
    if not line:
        return None
    method, path, _ = line.decode().split(" ", 2)
    headers: dict[str, str] = {}
    while (line := reader.readline().strip()) != b"":
        name, _, value = line.decode().partition(":")
        headers[name.lower()] = value.strip()
    return Seen(method, path, headers, reader.read(int(headers.get("content-length", 0))))


def _rendered(status: int, headers: dict[str, str], body: bytes) -> bytes:
    dropped = {"content-length", "connection"}
    lines = [f"{name}: {value}" for name, value in headers.items() if name.lower() not in dropped]
    head = "\r\n".join([f"HTTP/1.1 {status} X", *lines, f"content-length: {len(body)}", "", ""])
    return head.encode() + body


def _end(connection: socket.socket) -> None:
    with suppress(OSError):  # it may have ended already
        connection.shutdown(socket.SHUT_RDWR)


@contextmanager
def rude(backend_port: int = 0) -> Iterator[RudeServer]:
    """A rude server before a polite one."""
    server = RudeServer(backend_port)
    try:
        yield server
    finally:
        server.close()
