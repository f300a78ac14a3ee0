"""Databases for the outbox: SQLite in a file, and PostgreSQL where it is installed."""

import os
import pwd
import shutil
import sqlite3
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from corvo_sdk import Client, Corvo
from corvo_sdk.outbox import SqlOutbox
from tests.support.server import Server, SystemClock, running

Connect = Callable[[], Any]


def _tool(name: str) -> str | None:
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return shutil.which(name, path=os.pathsep.join([*map(str, folders), os.environ["PATH"]]))


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """A PostgreSQL of this test run, reached by a socket in its own folder."""
    initdb, postgres = _tool("initdb"), _tool("postgres")
    if initdb is None or postgres is None:
        pytest.skip("PostgreSQL is not installed")
    user: str | None = None
    with tempfile.TemporaryDirectory(prefix="corvo-pg-") as folder:
        if os.geteuid() == 0:
            # The server refuses to run as root.
            try:
                account = pwd.getpwnam("postgres")
            except KeyError:
                pytest.skip("there is no account to run PostgreSQL with")
            user = account.pw_name
            os.chown(folder, account.pw_uid, account.pw_gid)
        data = f"{folder}/data"
        subprocess.run(
            [initdb, "-D", data, "-A", "trust", "-U", "corvo", "--no-sync"],
            user=user,
            cwd=folder,
            check=True,
            capture_output=True,
        )
        settings = {"listen_addresses": "", "unix_socket_directories": folder, "fsync": "off"}
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        with Path(folder, "log").open("wb") as log:
            process = subprocess.Popen(
                [postgres, "-D", data, *options], user=user, cwd=folder, stdout=log, stderr=log
            )
        address = f"host={folder} user=corvo dbname=postgres"
        try:
            _wait_for(address, process)
            yield address
        finally:
            process.terminate()
            process.wait(30)


def _wait_for(address: str, process: "subprocess.Popen[bytes]") -> None:
    while process.poll() is None:
        try:
            psycopg.connect(address, connect_timeout=10).close()
        except psycopg.OperationalError:
            continue
        return
    pytest.fail("PostgreSQL did not start")


@pytest.fixture(params=["sqlite", "postgresql"])
def connect(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Connect]:
    """Opens connections to a database with an empty outbox."""
    if request.param == "sqlite":
        path = tmp_path / "app.db"

        def connect() -> Any:
            return sqlite3.connect(path, timeout=30)
    else:
        address = request.getfixturevalue("postgres")

        def connect() -> Any:
            return psycopg.connect(address)

    first = connect()
    first.cursor().execute("DROP TABLE IF EXISTS corvo_outbox")
    SqlOutbox().create(first)
    first.commit()
    yield connect
    first.close()


@pytest.fixture
def server() -> Iterator[Server]:
    with running("fast", clock=SystemClock()) as server:
        yield server


@pytest.fixture
def client(server: Server) -> Iterator[Client]:
    with Client(f"http://127.0.0.1:{server.port}", retries=0) as client:
        yield client


@pytest.fixture
def app() -> Corvo:
    """An app whose own client would fail: an outbox never calls the server itself."""
    return Corvo(url="http://127.0.0.1:1", retries=0)


class Rows:
    """What a test looks at: the rows of the outbox and the jobs of the server."""

    def __init__(self, connect: Connect, server: Server) -> None:
        self._connect = connect
        self._server = server

    def left(self) -> int:
        """Count the rows."""
        return self.query("SELECT COUNT(*) FROM corvo_outbox")[0][0]

    def query(self, statement: str) -> list[Any]:
        connection = self._connect()
        try:
            cursor = connection.cursor()
            cursor.execute(statement)
            found = cursor.fetchall() if cursor.description else []
            connection.commit()
            return found
        finally:
            connection.close()

    def jobs(self, queue: str = "q") -> list[int]:
        """Fetch everything there is; the argument `number` of each job, in order."""
        found: list[int] = []
        while True:
            body = {"queues": [queue], "worker_id": "w", "timeout": 0, "count": 500}
            jobs = self._server.post("/fetch/batch", body).json["jobs"]
            if not jobs:
                return found
            found += [job["payload"]["number"] for job in jobs]


@pytest.fixture
def rows(connect: Connect, server: Server) -> Rows:
    return Rows(connect, server)
