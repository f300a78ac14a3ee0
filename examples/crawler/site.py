"""python site.py PORT: pages that link to each other; /report tells how it was treated.

Whoever asks more than twenty times within one second is sent away with 429.
"""

import json
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PAGES = 30
requests: list[float] = []
refused: list[float] = []


class Site(BaseHTTPRequestHandler):
    """Answers /0 to /29; each page links to its number doubled, and to the one after that."""

    def do_GET(self) -> None:
        now = time.monotonic()
        number = int(self.path[1:]) if self.path[1:].isdecimal() else -1
        if self.path == "/report":
            report = {"requests": len(requests), "refused": len(refused), "busiest": busiest()}
            self._answer(200, json.dumps(report))
            return
        requests.append(now)
        if sum(now - earlier < 1 for earlier in requests) > 20:
            refused.append(now)
            self._answer(429, "slow down", {"Retry-After": "1"})
        elif 0 <= number < PAGES:
            links = [f'<a href="/{each}">next</a>' for each in (2 * number, 2 * number + 1)]
            self._answer(200, f"<title>Page {number}</title>{''.join(links)}")
        else:
            self._answer(404, "there is no such page")

    def _answer(self, status: int, text: str, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(text)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Say nothing."""


def busiest() -> int:
    """Count the requests of the second that had most of them."""
    return max((sum(0 <= at - start < 1 for at in requests) for start in requests), default=0)


ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Site).serve_forever()
