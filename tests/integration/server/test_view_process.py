"""The view as a client of a running server meets it."""

import os
import signal
from pathlib import Path

from tests.support.process import ServerProcess
from tests.support.viewed import ask, reach, view_file, view_of

FLAGS = ("--fsync", "off", "--shutdown-timeout", "1s")


def enqueue(server: ServerProcess) -> int:
    """Enqueue a job; returns the index it was written at."""
    client = server.client()
    try:
        return client.call("POST", "/api/v1/enqueue", {"queue": "q"}).index
    finally:
        client.close()


def test_the_view_follows_dies_comes_back_and_is_built_anew(tmp_path: Path):
    """Reads wait for an index, fail while the view is dead and not longer; writes never notice."""
    with ServerProcess(tmp_path / "data", *FLAGS) as server:
        index = enqueue(server)
        assert reach(server) >= index
        status, _, body = ask(server, "GET", "/admin/view", {"X-Corvo-After": str(index)})
        assert (status, body["position"] >= index) == (200, True)
        assert ask(server, "GET", "/healthz")[2] == {"status": "ok", "view": "ok"}

        status, headers, body = ask(server, "GET", f"/admin/view?after={index + 10**6}")
        assert (status, body["code"]) == (503, "VIEW_BEHIND")
        assert int(headers["retry-after"]) >= 1
        status, _, body = ask(server, "GET", "/admin/view?after=soon")
        assert (status, body["field"]) == (400, "after")

        pid = view_of(server)["pid"]
        os.kill(pid, signal.SIGSTOP)
        os.kill(pid, signal.SIGKILL)
        assert enqueue(server) > index
        reach(server)
        assert view_of(server)["pid"] != pid

        status, _, body = ask(server, "POST", "/admin/rebuild-sqlite")
        assert (status, body["status"]) == (202, "running")
        while ask(server, "GET", "/admin/rebuild-sqlite")[2]["status"] == "running":
            enqueue(server)
        reach(server)
        found = ask(server, "GET", "/admin/rebuild-sqlite")[2]
        assert (found["status"], found["rebuilds"]) == ("done", 1)
        assert view_of(server)["lag"] == 0
        assert server.stop() == 0
    assert view_file(tmp_path / "data").name == "view-000002.sqlite"
    left = [path.name for path in (tmp_path / "data" / "view").iterdir()]
    assert [name for name in left if "000001" in name or "checkpoint" in name] == []


def test_a_server_without_a_view_says_so(tmp_path: Path):
    """With `--view off` reads of it are refused with the way out, and health is unharmed."""
    with ServerProcess(tmp_path / "data", *FLAGS, "--view", "off") as server:
        enqueue(server)
        status, _, body = ask(server, "GET", "/admin/view")
        assert (status, body["code"]) == (503, "VIEW_DOWN")
        assert "--view off" in body["hint"]
        assert ask(server, "POST", "/admin/rebuild-sqlite")[0] == 503
        assert ask(server, "GET", "/healthz")[2] == {"status": "ok", "view": "off"}
        assert not (tmp_path / "data" / "view").exists()
        assert server.stop() == 0


def test_an_ephemeral_server_has_a_view_that_leaves_nothing(tmp_path: Path):
    """In memory, too, the view follows and can be built anew."""
    with ServerProcess(tmp_path / "data", "--ephemeral", "--shutdown-timeout", "1s") as server:
        assert reach(server) >= 0
        enqueue(server)
        ask(server, "POST", "/admin/rebuild-sqlite")
        while ask(server, "GET", "/admin/rebuild-sqlite")[2]["status"] == "running":
            reach(server)
        assert reach(server) > 0
        assert server.stop() == 0
