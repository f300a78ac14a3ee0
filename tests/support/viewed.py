"""Asking a real server about its view."""

import http.client
import json
from pathlib import Path
from typing import Any

from tests.support.process import ServerProcess

PATIENCE = 12  # each try waits on the server's side, up to five seconds


def ask(
    server: ServerProcess, method: str, path: str, headers: dict[str, str] | None = None
) -> tuple[int, dict[str, str], Any]:
    """Send one request; returns status, headers and body."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
    connection.request(method, "/api/v1" + path, headers=headers or {})
    response = connection.getresponse()
    lines = {name.lower(): value for name, value in response.getheaders()}
    body = json.loads(response.read())
    connection.close()
    return response.status, lines, body


def view_of(server: ServerProcess) -> dict[str, Any]:
    """What the server says about its view."""
    return ask(server, "GET", "/cluster/status")[2]["view"]


def reach(server: ServerProcess) -> int:
    """Wait until the view has everything written so far; returns the index it has."""
    index = int(ask(server, "GET", "/livez")[1]["x-corvo-index"])
    answers: list[Any] = []
    for _ in range(PATIENCE * 20):
        status, _, body = ask(server, "GET", f"/admin/view?after={index}")
        if status == 200:
            assert body["position"] >= index
            return body["position"]
        assert body["code"] in ("VIEW_DOWN", "VIEW_BEHIND"), body
        answers.append(body["error"])
    raise AssertionError(f"the view did not reach {index}: {answers[-5:]}")


def view_file(data: Path) -> Path:
    """The file the view last used."""
    return max((data / "view").glob("view-*.sqlite"))
