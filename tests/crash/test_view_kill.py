"""The view is killed again and again under load: writes go on, and it ends equal to the store."""

import os
import signal
import threading
from pathlib import Path
from typing import Any

import apsw

from corvo.cli.client import Client
from corvo.server.view_process import CheckpointSource
from corvo.view.rebuild import build
from corvo.view.schema import open_writer
from tests.model.profiles import IS_LONG
from tests.support.process import ServerProcess
from tests.support.view import dump, locks, words
from tests.support.viewed import reach, view_file, view_of

KILLS = 100 if IS_LONG else 20
ROUNDS = 4  # of the load for each kill, so that a busy machine gets through


class Load(threading.Thread):
    """Enqueues, fetches, acknowledges and fails until told to stop; counts what was answered."""

    def __init__(self, client: Client) -> None:
        super().__init__()
        self._client = client
        self.stopping = threading.Event()
        self.rounds = threading.Semaphore(ROUNDS)
        self.enqueued = 0
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            while True:
                self.rounds.acquire()
                if self.stopping.is_set():
                    return
                self._round()
        except BaseException as error:  # noqa: BLE001 - shown by the test
            self.error = error
        finally:
            self._client.close()

    def _round(self) -> None:
        jobs = [
            {"queue": f"q{n % 3}", "payload": {"n": n}, "tags": {"k": str(n)}, "max_retries": 2}
            for n in range(20)
        ]
        self._post("/enqueue/batch", {"jobs": jobs})
        self.enqueued += len(jobs)
        body = {"queues": ["q0", "q1", "q2"], "worker_id": "w", "timeout": 0, "count": 12}
        for job in self._post("/fetch/batch", body)["jobs"]:
            body = {"lease_token": job["lease_token"]}
            if job["payload"]["n"] % 4:
                self._post(f"/ack/{job['job_id']}", body | {"result": {"x": "y" * 300}})
            else:
                self._post(f"/fail/{job['job_id']}", body | {"error": f"boom {self.enqueued}"})

    def _post(self, path: str, body: Any) -> Any:
        return self._client.call("POST", "/api/v1" + path, body).body


def test_killing_the_view_under_load_leaves_it_equal_to_the_store(tmp_path: Path):
    """Twenty kills later, in a soak a hundred, every table is what building anew gives."""
    data = tmp_path / "data"
    server = ServerProcess(data, "--fsync", "off", "--shutdown-timeout", "1s")
    with server:
        load = Load(server.client())
        load.start()
        try:
            _set_up(server)
            for _ in range(KILLS):
                index = reach(server)
                assert index > 0
                load.rounds.release(ROUNDS)
                os.kill(view_of(server)["pid"], signal.SIGKILL)
        finally:
            load.stopping.set()
            load.rounds.release()
            load.join()
        assert load.error is None
        reach(server)
        figures = view_of(server)
        assert figures["starts"] == KILLS + 1
        assert figures["rebuild"]["rebuilds"] == 0
        assert server.stop() == 0
    assert load.enqueued > 0
    source = CheckpointSource(str(data / "store"))
    try:
        build(source, tmp_path / "fresh.sqlite", lambda _step, _done: None)
    finally:
        source.close()
    followed = open_writer(view_file(data))
    rebuilt = open_writer(tmp_path / "fresh.sqlite")
    expected, found = dump(rebuilt), dump(followed)
    assert len([job for job in found["jobs"] if "cron" not in job]) == load.enqueued
    assert len(found["schedules"]) == len(found["webhooks"]) == 1
    assert "hush-hush" not in repr(found["webhooks"])
    for table, rows in expected.items():
        assert rows == found[table], table
    assert locks(followed, 0) == locks(rebuilt, 0)
    assert words(followed) == words(rebuilt)
    _check_whole(followed)
    followed.close()
    rebuilt.close()


def _set_up(server: ServerProcess) -> None:
    """Something to fire all the time, and somebody to tell, about what never happens."""
    client = server.client()
    try:
        schedule = {"name": "often", "cron": "* * * * * *", "queue": "cron", "payload": {"x": 1}}
        client.call("POST", "/api/v1/schedules", schedule)
        webhook = {"url": "https://example.com/", "events": ["queue.paused"], "secret": "hush-hush"}
        client.call("POST", "/api/v1/webhooks", webhook)
    finally:
        client.close()


def _check_whole(connection: apsw.Connection) -> None:
    assert connection.execute("PRAGMA integrity_check").get == "ok"
