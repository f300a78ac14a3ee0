"""Backup under load, restore and a new start, as an operator does it."""

import threading
from pathlib import Path

import msgspec

from tests.support.process import ServerProcess, corvo

API = "/api/v1"


class Load:
    """Producers and workers that go on until they are told to stop, and what they were promised."""

    def __init__(self, server: ServerProcess) -> None:
        self._server = server
        self._is_over = threading.Event()
        self.has_begun = threading.Event()
        self.done: list[str] = []
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        client = self._server.client()
        while not self._is_over.is_set():
            client.call("POST", f"{API}/enqueue", {"queue": "load", "payload": {"x": "y" * 500}})
            query = {"queues": ["load"], "worker_id": "w", "timeout": 0}
            job = client.call("POST", f"{API}/fetch", query).body["job_id"]
            client.call("POST", f"{API}/ack/{job}", {"result": {"job": job}})
            self.done.append(job)
            if len(self.done) >= 50:
                self.has_begun.set()
        client.close()

    def stop(self) -> None:
        """Let the last round finish."""
        self._is_over.set()
        self._thread.join()


def test_a_backup_taken_under_load_restores(tmp_path: Path):
    """What was settled before it is settled after it; the audit is clean and the epoch is new."""
    archive, target = tmp_path / "b.tar", tmp_path / "restored"
    with ServerProcess(tmp_path / "data") as server:
        client = server.client()
        dead = client.call("POST", f"{API}/enqueue", {"queue": "d", "max_retries": 1}).body[
            "job_id"
        ]
        query = {"queues": ["d"], "worker_id": "w", "timeout": 0}
        client.call("POST", f"{API}/fetch", query)
        client.call("POST", f"{API}/fail/{dead}", {"error": "boom"})
        load = Load(server)
        assert load.has_begun.wait(30)
        sure = list(load.done)
        finished = corvo("backup", "-o", str(archive), "--output", "json", url=server.url)
        load.stop()
        assert finished.returncode == 0, finished.stderr
        taken = msgspec.json.decode(finished.stdout)
        epoch = client.call("GET", f"{API}/cluster/status").body["epoch"]
        assert taken["epoch"] == epoch
        assert not list((tmp_path / "data" / "copies").iterdir())
        client.close()
    restored = corvo("restore", str(archive), "--data-dir", str(target), "--output", "json")
    assert restored.returncode == 0, restored.stderr
    found = msgspec.json.decode(restored.stdout)
    assert found["backup_index"] == taken["index"]
    checked = corvo("fsck", "--data-dir", str(target))
    assert checked.returncode == 0, checked.stdout + checked.stderr
    with ServerProcess(target) as server:
        client = server.client()
        status = client.call("GET", f"{API}/cluster/status").body
        assert status["epoch"] == found["epoch"] != epoch
        for job in sure:
            assert client.call("GET", f"{API}/jobs/{job}").body["result"] == {"job": job}
        failed = client.call("GET", f"{API}/jobs/{dead}").body
        assert (failed["state"], failed["attempt"]) == ("dead", 1)
        assert failed["errors"][0]["error"] == "boom"
        client.call("POST", f"{API}/enqueue", {"queue": "load"})
        client.close()


def test_export_and_import_between_two_servers(tmp_path: Path):
    """The commands carry a namespace over; a second import says what was there already."""
    path = tmp_path / "lines"
    with ServerProcess(tmp_path / "a", "--ephemeral") as source:
        assert corvo("enqueue", "q", '{"n":1}', url=source.url).returncode == 0
        assert corvo("enqueue", "q", '{"n":2}', url=source.url).returncode == 0
        exported = corvo("export", "-o", str(path), url=source.url)
        assert (
            exported.stdout == "1 queues  0 limits  2 jobs  0 batches  0 schedules  0 webhooks\n"
        ), exported.stderr
    with ServerProcess(tmp_path / "b", "--ephemeral") as other:
        imported = corvo("import", str(path), url=other.url)
        assert (
            imported.stdout == "1 queues  0 limits  2 jobs  0 batches  0 schedules  0 webhooks\n"
        ), imported.stderr
        again = corvo("import", "-", url=other.url, stdin=path.read_text())
        assert again.returncode == 1
        assert again.stderr.count("ALREADY_EXISTS") == 3
        assert corvo("queues", url=other.url).stdout.count("q ") >= 1


def test_a_server_refuses_a_half_restored_directory(tmp_path: Path):
    """It would look like an empty server."""
    (tmp_path / "data" / "restore.partial").mkdir(parents=True)
    finished = corvo("server", "--data-dir", str(tmp_path / "data"), "--bind", "127.0.0.1:0")
    assert finished.returncode == 2
    assert "did not finish" in finished.stderr
