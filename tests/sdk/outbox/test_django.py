"""The outbox in a Django project: a process of its own, since Django is set up once per process."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from corvo_sdk import Client
from tests.support.server import Server

PROJECT = """
import json, sys, threading
import django
from django.conf import settings
url, path = sys.argv[1:]
database = {"ENGINE": "django.db.backends.sqlite3", "NAME": path}
settings.configure(DATABASES={"default": database}, USE_TZ=True)
django.setup()
from django.db import connection, transaction
from django.db.migrations.state import ProjectState
from corvo_sdk import Client, Corvo
from corvo_sdk.outbox import Relay, SqlOutbox, django as outbox

app = Corvo(url=url)

@app.task(queue="q")
def work(number: int) -> None: ...

def migrate(direction):
    operation, state = outbox.create_table(), ProjectState()
    with connection.schema_editor() as editor:
        getattr(operation, direction)("app", editor, state, state)

said = {}
migrate("database_forwards")
migrate("database_forwards")
with transaction.atomic():
    outbox.add(work.call(1))
    outbox.add(work.call(2))
try:
    with transaction.atomic():
        outbox.add(work.call(3))
        outbox.enqueue_on_commit(work.call(4))
        raise KeyError
except KeyError:
    pass
said["waiting"] = SqlOutbox().counts(connection).waiting
with transaction.atomic():
    outbox.enqueue_on_commit(work.call(5))
    said["early"] = [queue.name for queue in app.client.queues()]
with Client(url) as client:
    relay = Relay(outbox.connect, client)
    steps = []
    def relayed():
        steps.extend([relay.run_once(), relay.run_once()])
        relay.close()
    thread = threading.Thread(target=relayed)
    thread.start()
    thread.join()
said["steps"] = [step.outcome for step in steps]
said["left"] = SqlOutbox().counts(connection).waiting
migrate("database_backwards")
said["tables"] = connection.introspection.table_names()
app.close()
print(json.dumps(said))
"""


def test_jobs_follow_the_transactions_of_a_project(
    server: Server, client: Client, tmp_path: Path
) -> None:
    """The migration, rows in atomic blocks, on_commit, and a relay on Django's own connection."""
    url = f"http://127.0.0.1:{server.port}"
    found = subprocess.run(
        [sys.executable, "-c", PROJECT, url, str(tmp_path / "django.db")],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.stderr == ""
    said: dict[str, Any] = json.loads(found.stdout)
    assert {**said, "tables": [name for name in said["tables"] if "corvo" in name]} == {
        "waiting": 2,
        "early": [],
        "steps": ["sent", "idle"],
        "left": 0,
        "tables": [],
    }
    numbers = [server.fetch("q")["payload"]["number"] for _ in range(3)]
    assert numbers == [5, 1, 2]
    assert server.fetch("q") is None
