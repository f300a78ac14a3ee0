"""The relay: every committed row becomes one job, whatever dies in between."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from corvo_sdk import Client, Corvo
from corvo_sdk.errors import CorvoError
from corvo_sdk.outbox import Relay, SqlOutbox, Step
from corvo_sdk.outbox.parcels import PARCEL_BYTES_MAX
from corvo_sdk.outbox.relay import RelayError
from corvo_sdk.task import FunctionTask
from tests.sdk.outbox.conftest import Connect, Rows
from tests.support.server import Server

Work = FunctionTask[..., Any, ..., Any]


@pytest.fixture
def work(app: Corvo) -> Work:
    @app.task(queue="q")
    def work(number: int, text: str = "") -> None: ...

    return work


def fill(connect: Connect, work: Work, count: int, **options: Any) -> None:
    connection = connect()
    task = work.with_options(**options)
    SqlOutbox().add_many(connection, [task.call(number) for number in range(count)])
    connection.commit()
    connection.close()


class Spy:
    """A client that lets a test act around each call."""

    def __init__(self, client: Client, after: Callable[[], object]) -> None:
        self._client = client
        self._after = after

    def request(self, *args: Any, **kwargs: Any) -> Any:
        answer = self._client.request(*args, **kwargs)
        self._after()
        return answer


def test_committed_rows_become_jobs_in_their_order(
    connect: Connect, client: Client, work: Work, rows: Rows
) -> None:
    """Nothing is left in the table, and nothing is sent twice."""
    fill(connect, work, 25)
    relay = Relay(connect, client, parcel_rows=10)
    steps = [relay.run_once() for _ in range(4)]
    relay.close()
    assert [Step("sent", 10), Step("sent", 10), Step("sent", 5), Step("idle")] == steps
    assert list(range(25)) == rows.jobs()
    assert rows.left() == 0
    assert relay.statistics()["sent"] == 25


def test_a_row_that_was_rolled_back_is_never_a_job(
    connect: Connect, client: Client, work: Work, rows: Rows
) -> None:
    """Nor is one whose transaction is still open."""
    connection = connect()
    SqlOutbox().add(connection, work.call(1))
    connection.rollback()
    relay = Relay(connect, client)
    assert Step("idle") == relay.run_once()
    relay.close()
    connection.close()
    assert rows.jobs() == []


def test_options_travel_with_the_row(
    connect: Connect, client: Client, server: Server, work: Work
) -> None:
    """Priority, tags and a time are those of the call, as it was added."""
    fill(connect, work, 1, priority="high", tags={"a": "b"}, retries=9)
    relay = Relay(connect, client)
    relay.run_once()
    relay.close()
    found = server.fetch("q")
    assert found["tags"] == {"a": "b", "task": "work"}
    assert (found["priority"], found["max_retries"]) == ("high", 9)


KILLED = """
import os, signal, sqlite3, sys
import psycopg
from corvo_sdk import Client
from corvo_sdk.outbox import Relay
kind, address, url, point = sys.argv[1:]
class Dying:
    def __init__(self): self.client = Client(url)
    def request(self, *args, **kwargs):
        if point == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        self.client.request(*args, **kwargs)
        os.kill(os.getpid(), signal.SIGKILL)
library = sqlite3 if kind == "sqlite" else psycopg
Relay(lambda: library.connect(address), Dying(), parcel_rows=7).run_once()
"""


@pytest.mark.parametrize("point", ["before", "after"])
def test_a_relay_killed_around_the_enqueue_doubles_and_loses_nothing(
    connect: Connect, client: Client, server: Server, work: Work, rows: Rows, point: str
) -> None:
    """The next relay sends the same parcel under the same key, even with other settings."""
    fill(connect, work, 20)
    probe = connect()
    kind = "sqlite" if "sqlite" in type(probe).__module__ else "postgresql"
    address = (
        probe.execute("PRAGMA database_list").fetchone()[2]
        if kind == "sqlite"
        else f"host={probe.info.host} user=corvo dbname=postgres"
    )
    probe.close()
    url = f"http://127.0.0.1:{server.port}"
    for _ in range(2):
        died = subprocess.run(
            [sys.executable, "-c", KILLED, kind, address, url, point],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            check=False,
        )
        assert died.returncode == -signal.SIGKILL
    assert rows.left() == 20
    # Two parcels are bound and have no relay; a minute later somebody else takes them over.
    early = Relay(connect, client, parcel_rows=100)
    assert Step("sent", 6) == early.run_once()
    assert Step("idle") == early.run_once()
    early.close()
    late = Relay(connect, client, parcel_rows=100, clock=lambda: 4e9)
    assert [Step("sent", 7), Step("sent", 7), Step("idle")] == [late.run_once() for _ in range(3)]
    late.close()
    assert list(range(20)) == sorted(rows.jobs())
    assert rows.left() == 0


def test_a_batch_taken_over_while_it_is_sent_is_sent_once(
    connect: Connect, client: Client, work: Work, rows: Rows
) -> None:
    """A slow relay and the one that took over send the same parcel; the server knows it."""
    fill(connect, work, 5)
    second = Relay(connect, client, clock=lambda: 4e9)
    steps: list[Step] = []
    spy: Any = Spy(client, lambda: steps.append(second.run_once()))
    first = Relay(connect, spy)
    assert Step("sent", 5) == first.run_once()
    assert [Step("sent", 5)] == steps
    first.close()
    second.close()
    assert list(range(5)) == rows.jobs()


def test_many_relays_share_the_work_without_doubling(
    connect: Connect, client: Client, work: Work, rows: Rows
) -> None:
    """Four relays at once on one table: every row is one job."""
    fill(connect, work, 400)
    relays = [Relay(connect, client, parcel_rows=20, poll_s=0.01) for _ in range(4)]
    for relay in relays:
        relay.start()
    done = threading.Event()

    def watch() -> None:
        while rows.left():
            continue
        done.set()

    watcher = threading.Thread(target=watch)
    watcher.start()
    assert done.wait(60)
    watcher.join()
    for relay in relays:
        relay.stop()
        relay.stop()
    assert sum(relay.statistics()["sent"] for relay in relays) == 400
    assert list(range(400)) == sorted(rows.jobs())


def test_a_row_the_server_refuses_does_not_stop_the_others(
    connect: Connect, client: Client, work: Work, rows: Rows
) -> None:
    """The parcel is split, the row set aside with the reason; once mended it can be tried again."""
    fill(connect, work, 3)
    fill(connect, work, 1, queue="not a name")
    fill(connect, work, 3)
    relay = Relay(connect, client)
    steps = [relay.run_once() for _ in range(9)]
    assert [Step("split", 7), *[Step("sent", 1)] * 3, Step("refused", 1)] == steps[:5]
    assert [*[Step("sent", 1)] * 3, Step("idle")] == steps[5:]
    assert rows.jobs() == [0, 1, 2, 0, 1, 2]
    connection = connect()
    counts = SqlOutbox().counts(connection)
    assert (counts.waiting, counts.refused) == (0, 1)
    assert "not a valid name" in rows.query("SELECT error FROM corvo_outbox")[0][0]
    connection.rollback()
    SqlOutbox().retry_refused(connection)
    connection.commit()
    assert Step("refused", 1) == relay.run_once()
    rows.query("UPDATE corvo_outbox SET body = REPLACE(body, 'not a name', 'q')")
    SqlOutbox().retry_refused(connection)
    connection.commit()
    connection.close()
    assert Step("sent", 1) == relay.run_once()
    relay.close()
    assert rows.jobs() == [0]


def test_a_relay_killed_while_it_splits_doubles_nothing(
    connect: Connect, client: Client, work: Work, rows: Rows
) -> None:
    """Rows of a split parcel have keys of their own, also for the relay that comes after."""
    fill(connect, work, 1, queue="not a name")
    fill(connect, work, 4)

    class Died(BaseException):
        pass

    def die() -> None:
        raise Died

    first = Relay(connect, client)
    assert Step("split", 5) == first.run_once()
    assert Step("refused", 1) == first.run_once()
    first.close()
    dying: Any = Spy(client, die)
    second = Relay(connect, dying)
    with pytest.raises(Died):
        second.run_once()
    second.close()
    third = Relay(connect, client, clock=lambda: 4e9)
    assert [Step("sent", 1)] * 4 == [third.run_once() for _ in range(4)]
    third.close()
    assert rows.jobs() == [0, 1, 2, 3]


def test_rows_too_large_for_one_request_go_in_several(
    connect: Connect, client: Client, work: Work, rows: Rows
) -> None:
    """What is beyond the bytes of one request waits for the next; order is kept."""
    size = 200 * 1024
    connection = connect()
    calls = [work.call(number, "x" * size) for number in range(PARCEL_BYTES_MAX // size + 3)]
    SqlOutbox().add_many(connection, calls)
    connection.commit()
    connection.close()
    relay = Relay(connect, client)
    first, second = relay.run_once(), relay.run_once()
    relay.close()
    assert first.rows * size <= PARCEL_BYTES_MAX < (first.rows + 1) * (size + 100)
    assert len(calls) == first.rows + second.rows
    assert list(range(len(calls))) == rows.jobs()


def test_while_the_server_is_away_rows_wait(
    connect: Connect, client: Client, work: Work, rows: Rows
) -> None:
    """A step says what is wrong, keeps the parcel, and a later one sends it."""
    fill(connect, work, 3)
    with Client("http://127.0.0.1:1", retries=0) as away:
        relay = Relay(connect, away)
        with pytest.raises(RelayError, match="the server says") as caught:
            relay.run_once()
        assert isinstance(caught.value.__cause__, CorvoError)
        relay.close()
    assert rows.left() == 3
    later = Relay(connect, client)
    assert Step("sent", 3) == later.run_once()
    later.close()
    assert rows.jobs() == [0, 1, 2]


def test_trouble_with_the_database_is_waited_out(
    connect: Connect, client: Client, work: Work, rows: Rows
) -> None:
    """A relay that lost its connection opens another one and goes on."""
    fill(connect, work, 2)
    opened: list[Any] = []

    def flaky() -> Any:
        opened.append(connect())
        if len(opened) == 1:
            opened[0].close()
        return opened[-1]

    relay = Relay(flaky, client)
    with pytest.raises(RelayError, match="the database says"):
        relay.run_once()
    assert Step("sent", 2) == relay.run_once()
    relay.close()
    assert relay.statistics()["troubles"] == 1
    assert rows.jobs() == [0, 1]


def test_a_running_relay_survives_both(
    connect: Connect, server: Server, work: Work, rows: Rows, caplog: pytest.LogCaptureFixture
) -> None:
    """`run` reports trouble, waits, and delivers once the trouble is over."""
    fill(connect, work, 4)
    url = f"http://127.0.0.1:{server.port}"
    with Client(url, retries=0) as client:
        troubles = iter([True, True])
        relay: Relay

        class Flaky:
            def request(self, *args: Any, **kwargs: Any) -> Any:
                if next(troubles, False):
                    raise CorvoError("no route", code="CONNECTION_FAILED")
                answer = client.request(*args, **kwargs)
                relay._stopping.set()
                return answer

        flaky: Any = Flaky()
        relay = Relay(connect, flaky, poll_s=0.01)
        relay.run()
    assert relay.statistics() == {"sent": 4, "split": 0, "refused": 0, "troubles": 2}
    assert "tries again in" in caplog.text
    assert rows.jobs() == [0, 1, 2, 3]


@pytest.mark.parametrize(
    "wrong", [{"parcel_rows": 0}, {"parcel_rows": 5_001}, {"lease_s": 0}, {"poll_s": -1}]
)
def test_settings_out_of_range_are_refused(wrong: Any, client: Client, tmp_path: Path) -> None:
    """A relay that could never work is not made."""
    with pytest.raises(ValueError):
        Relay(lambda: None, client, **wrong)
