"""Backup, restore, export and import over real sockets."""

import io
import tarfile
from pathlib import Path
from typing import Any

import msgspec
import pytest

from corvo.api import archive
from corvo.errors import CorruptionError, CorvoError
from corvo.machine import Machine
from corvo.machine.audit import audit
from corvo.server.restore import restore
from corvo.storage.rocks import RocksStore
from tests.support.server import Server, running

JSONL = "application/x-ndjson"
COUNTS = b'"total":1,"succeeded":0,"failed":0,"cancelled":0}'
LINE_NAME, LINE_ID = "lines[2].name", "lines[2].id"
WEBHOOK_ID, SCHEDULE_ID = b"wh_01J00000000000000000000001", b"sched_01J00000000000000000000001"
WEBHOOK_LINE = b'{"kind":"webhook","id":"%b","created_at":"2026-01-01T00:00:00Z","url":"%b"}'
SCHEDULE_LINE = (
    b'{"kind":"schedule","id":"%b","created_at":"2026-01-01T00:00:00Z",'
    b'"updated_at":"2026-01-01T00:00:00Z","spec":{"name":"n","queue":"q","cron":"%b"}}'
)


def fill(server: Server) -> dict[str, str]:
    """Give a server jobs in every state but active; returns them by state."""
    server.request("PUT", "/api/v1/limits/api", {"max": 3})
    server.request("PATCH", "/api/v1/queues/mail", {"max_concurrency": 7, "rate": None})
    found: dict[str, str] = {}
    payload = msgspec.Raw(b'{"n": 12345678901234567890.5, "s": "\\u00e9"}')
    found["completed"] = server.enqueue("mail", payload=payload, tags={"a": "b"}, limits=["api"])
    claim = server.fetch("mail")
    ack = {"lease_token": claim["lease_token"], "result": {"ok": [1, 2]}}
    assert server.post(f"/ack/{found['completed']}", ack).status == 200
    found["dead"] = server.enqueue("mail", max_retries=1)
    server.fetch("mail")
    server.post(f"/fail/{found['dead']}", {"error": "boom", "backtrace": "line 1"})
    found["retrying"] = server.enqueue("mail", retry_base_delay="1h")
    server.fetch("mail")
    server.post(f"/fail/{found['retrying']}", {"error": "again"})
    found["cancelled"] = server.enqueue("mail")
    server.post(f"/jobs/{found['cancelled']}/cancel")
    found["held"] = server.enqueue("mail", hold={"reason": "look", "timeout": "1d"})
    found["scheduled"] = server.enqueue("mail", scheduled_at="2030-01-01T00:00:00Z")
    found["pending"] = server.enqueue(
        "mail",
        unique_key="k",
        group="g",
        limit_key="t",
        expire_after="1d",
        priority="high",
        checkpoint={"at": 3},
        trace={"id": "x"},
    )
    found["child"] = server.enqueue("mail", depends_on=[found["held"]])
    batch = {
        "jobs": [{"queue": "b", "payload": {"n": n}} for n in range(3)],
        "batch": {"callback_queue": "done", "callback_payload": {"x": 1}},
    }
    answer = server.post("/enqueue/batch", batch).json
    found["batch"] = answer["batch_id"]
    server.post(f"/ack/{server.fetch('b')['job_id']}")
    steps = [{"queue": "c1"}, {"queue": "c2", "payload": {"p": 1}}]
    found["chain"] = server.enqueue("c1", chain={"steps": steps, "on_failure": {"queue": "f"}})
    server.post("/queues/b/pause")
    return found


def take_backup(server: Server, path: Path) -> Path:
    """Download a backup."""
    reply = server.request("POST", "/api/v1/admin/backup")
    assert reply.status == 200, reply.body
    assert reply.headers["content-type"] == "application/x-tar"
    assert int(reply.headers["content-length"]) == len(reply.body)
    path.write_bytes(reply.body)
    return path


def bring(path: Path, target: Path) -> Any:
    """Restore as the command does."""
    return restore(path, target, cluster_name="corvo", node_name="node-1")


def test_a_backup_restores_into_an_empty_directory(tmp_path: Path):
    """The store is where the backup was, every invariant holds, and the history has a new name."""
    with running("fast") as server:
        found = fill(server)
        before = {name: server.job(each) for name, each in found.items() if each[:3] == "job"}
        path = take_backup(server, tmp_path / "b.tar")
        index, old = server.index, server.engine.read.epoch
    result = bring(path, tmp_path / "data")
    assert (result.backup_index, result.index) == (index, index + 1)
    assert result.epoch != old.hex()
    store = RocksStore(str(tmp_path / "data" / "store"), is_read_only=True)
    try:
        machine = Machine(store)
        assert machine.index == index + 1
        assert machine.epoch.hex() == result.epoch
        assert audit(store) == []
        counts = machine.queue(0, "mail")
        assert counts is not None
        assert counts.record.counts == [1, 2, 0, 1, 1, 1, 1, 1]
        assert before["dead"]["errors"][0]["error"] == "boom"
    finally:
        store.close()
    left = sorted(each.name for each in (tmp_path / "data").iterdir())
    assert left == ["LOCK", "store", "wal"]


def test_the_archive_is_an_ordinary_tar_with_a_manifest(tmp_path: Path, server: Server):
    """Any tool can look into it, and it says where it was taken."""
    server.enqueue()
    path = take_backup(server, tmp_path / "b.tar")
    with tarfile.open(path) as opened:
        names = opened.getnames()
        manifest = msgspec.json.decode(opened.extractfile("manifest.json").read())
    assert names[0] == "manifest.json"
    assert all(name.startswith("store/") for name in names[1:])
    assert manifest["index"] == server.index
    assert manifest["chain"] == server.engine.read.chain.hex()
    assert archive.unpack(path, None).index == server.index


@pytest.mark.parametrize("where", [0.0, 0.1, 0.3, 0.5, 0.7, 0.9])
def test_a_damaged_archive_is_refused_and_leaves_nothing(tmp_path: Path, where: float):
    """One flipped bit anywhere that matters is found, and the directory stays as it was."""
    with running("fast") as server:
        for _ in range(20):
            server.enqueue(payload={"x": "y" * 200})
        path = take_backup(server, tmp_path / "b.tar")
    content = bytearray(path.read_bytes())
    content[int(len(content) * where)] ^= 0x10
    path.write_bytes(content)
    target = tmp_path / "data"
    try:
        bring(path, target)
    except CorruptionError:
        assert not target.exists()
    else:
        # Padding between files and a few fields of a tar header carry no data.
        assert (target / "store").is_dir()


def test_a_truncated_archive_is_refused(tmp_path: Path, server: Server):
    """A download that broke off is no backup, wherever it broke off."""
    server.enqueue()
    path = take_backup(server, tmp_path / "b.tar")
    content = path.read_bytes()
    for size in (0, 100, 512, len(content) // 2, len(content) - 1024, len(content) - 1):
        path.write_bytes(content[:size])
        with pytest.raises(CorruptionError):
            bring(path, tmp_path / "data")
        assert not (tmp_path / "data").exists()


def test_an_archive_cannot_write_outside_its_folder(tmp_path: Path, server: Server):
    """Names with folders, links and surplus files are refused."""
    server.enqueue()
    path = take_backup(server, tmp_path / "b.tar")
    with tarfile.open(path) as opened:
        manifest = opened.extractfile("manifest.json").read()
        files = {m.name: opened.extractfile(m).read() for m in opened.getmembers()[1:]}
    for name in ("../evil", "/etc/evil", "store/../../evil", "store/a/b"):
        with tarfile.open(path, "w") as made:
            for each, content in {"manifest.json": manifest, **files, name: b"x"}.items():
                entry = tarfile.TarInfo(each)
                entry.size = len(content)
                made.addfile(entry, io.BytesIO(content))
        with pytest.raises(CorruptionError):
            bring(path, tmp_path / "data")
    assert not list(tmp_path.rglob("evil"))


def test_a_restore_needs_an_empty_directory(tmp_path: Path, server: Server):
    """What is there is never overwritten."""
    path = take_backup(server, tmp_path / "b.tar")
    target = tmp_path / "data"
    target.mkdir()
    (target / "precious").write_text("x")
    with pytest.raises(CorvoError) as caught:
        bring(path, target)
    assert caught.value.code == "CONFIG_INVALID"
    assert [each.name for each in target.iterdir()] == ["precious"]


def test_one_backup_at_a_time(server: Server):
    """A second one is asked to come back; after the first it gets its turn."""
    copy = server.run(server.engine.copy)
    reply = server.request("POST", "/api/v1/admin/backup")
    assert (reply.status, reply.json["code"]) == (429, "OVERLOADED")
    assert server.request("GET", "/api/v1/admin/export").status == 429
    server.run(copy.close)
    assert server.request("POST", "/api/v1/admin/backup").status == 200


def test_a_client_that_leaves_frees_the_copy(server: Server):
    """The next backup need not wait for somebody who is gone."""
    for _ in range(50):
        server.enqueue(payload={"x": "y" * 100_000})
    connection = server.connect()
    connection.request("POST", "/api/v1/admin/backup")
    connection.sock.recv(100)
    connection.close()
    server.wait_until(lambda: not server.engine._backups._is_busy)
    assert server.request("POST", "/api/v1/admin/backup").status == 200


# --- export and import ------------------------------------------------------------------------


def lines_of(server: Server) -> list[dict[str, Any]]:
    """Export, decoded."""
    reply = server.request("GET", "/api/v1/admin/export")
    assert reply.status == 200, reply.body
    assert reply.headers["content-type"] == JSONL
    return [msgspec.json.decode(line) for line in reply.body.splitlines()]


def send(server: Server, body: bytes) -> Any:
    """Import."""
    path = "/api/v1/admin/import"
    return server.request("POST", path, body, headers={"content-type": JSONL})


def test_an_import_brings_back_what_an_export_wrote():
    """States, attempts, errors, documents byte for byte; a second import is refused by line."""
    with running("fast") as server, running("slow") as other:
        found = fill(server)
        body = server.request("GET", "/api/v1/admin/export").body
        reply = send(other, body)
        assert reply.status == 200, reply.body
        assert reply.json["refused"] == []
        end = lines_of(server)[-1]
        assert {name: reply.json[name] for name in ("queues", "limits", "jobs", "batches")} == {
            name: end[name] for name in ("queues", "limits", "jobs", "batches")
        }
        assert lines_of(other)[1:] == lines_of(server)[1:]
        for each in found.values():
            path = f"/jobs/{each}" if each.startswith("job_") else f"/batches/{each}"
            assert other.get(path).body == server.get(path).body
        again = send(other, body).json
        assert {each["code"] for each in again["refused"]} == {"ALREADY_EXISTS"}
        assert again["jobs"] == again["queues"] == 0
        # Imported work goes on: the chain advances and the batch fires its callback.
        assert other.post(f"/ack/{other.fetch('c1')['job_id']}").status == 200
        assert other.fetch("c2")["payload"]["p"] == 1
        other.post("/queues/b/resume")
        for _ in range(2):
            other.post(f"/ack/{other.fetch('b')['job_id']}")
        assert other.fetch("done")["payload"]["batch"]["succeeded"] == 3


def test_an_active_job_comes_back_as_pending():
    """Its lease belongs to another server; the attempt is not burnt."""
    with running("fast") as server, running("fast") as other:
        identifier = server.enqueue()
        server.fetch()
        send(other, server.request("GET", "/api/v1/admin/export").body)
        assert (other.job(identifier)["state"], other.job(identifier)["attempt"]) == ("pending", 0)
        assert other.fetch()["attempt"] == 1


@pytest.mark.parametrize(
    ("line", "code", "field"),
    [
        (b"{", "PARSE_ERROR", "lines[2]"),
        (b'{"kind":"nothing"}', "VALIDATION_ERROR", "lines[2].kind"),
        (b'{"kind":"header","format":99}', "VALIDATION_ERROR", "lines[2].format"),
        (b'{"kind":"queue","name":"a b","created_at":"2026-01-01T00:00:00Z"}', None, LINE_NAME),
        (b'{"kind":"limit","name":"x"}', None, "lines[2].max"),
        (b'{"kind":"job","id":"x"}', None, "lines[2].queue"),
        (b'{"kind":"batch","id":"x",' + COUNTS, None, LINE_ID),
        (b'{"kind":"schedule","id":"x"}', None, "lines[2].spec"),
        (SCHEDULE_LINE % (b"sched_1", b"* * * * *"), None, LINE_ID),
        (SCHEDULE_LINE % (SCHEDULE_ID, b"99 * * * *"), None, "lines[2].spec.cron"),
        (WEBHOOK_LINE % (b"x", b"https://e.com"), None, LINE_ID),
        (WEBHOOK_LINE % (WEBHOOK_ID, b"ftp://e.com"), None, "lines[2].url"),
        (WEBHOOK_LINE % (WEBHOOK_ID, b'https://e.com","secret":"s'), None, "lines[2].secret"),
        (b"\xff", "PARSE_ERROR", "lines[2]"),
    ],
)  # fmt: skip
def test_a_malformed_line_refuses_the_whole_call(
    server: Server, line: bytes, code: str | None, field: str
):
    """It names the line and the field, and nothing is imported."""
    good = b'{"kind":"queue","name":"ok","created_at":"2026-01-01T00:00:00Z"}'
    reply = send(server, good + b"\n" + line + b"\n")
    assert reply.status == 400
    assert reply.json["code"] == (code or "VALIDATION_ERROR")
    assert reply.json["field"] == field
    assert server.get("/queues/ok").status == 404


def test_an_import_is_not_json(server: Server):
    """Lines of JSON have their own type; another one is 415, so no web page can send them."""
    reply = server.request("POST", "/api/v1/admin/import", {"kind": "end"})
    assert (reply.status, reply.json["code"]) == (415, "UNSUPPORTED_MEDIA_TYPE")


def test_secrets_are_not_exported(server: Server):
    """Whoever may read an export need not learn them."""
    server.request("PATCH", "/api/v1/queues/q", {"webhook_secret": "hunter2"})
    assert b"hunter2" not in server.request("GET", "/api/v1/admin/export").body


def fill_standing(server: Server) -> dict[str, str]:
    """Give a server schedules and webhooks of every kind; returns them by what is special."""
    found: dict[str, str] = {}
    for name, more in {
        "plain": {},
        "paused": {"paused": True},
        "rich": {
            "cron": "0 9 * * mon-fri", "timezone": "Europe/Berlin", "overlap": "skip",
            "catch_up": "all", "jitter": "30s", "priority": "high", "tags": {"a": "b"},
            "unique_key": "k", "unique_period": 60, "max_retries": 9, "retry_backoff": "linear",
            "payload": msgspec.Raw(b'{"n": 12345678901234567890.5}'),
            "end_at": "2040-01-01T00:00:00Z",
        },
    }.items():  # fmt: skip
        body = {"name": name, "queue": "cron", "cron": "*/5 * * * *"} | more
        reply = server.post("/schedules", body)
        assert reply.status == 201, reply.body
        found[name] = reply.json["id"]
    assert server.post(f"/schedules/{found['plain']}/run").status == 201
    for name, more in {
        "open": {"events": ["job.*"], "queues": ["mail", "a.*"], "retry_limit": 2},
        "secret": {"secret": "hunter2", "timeout": "3s"},
        "off": {"enabled": False},
    }.items():
        reply = server.post("/webhooks", {"url": f"https://example.com/{name}"} | more)
        assert reply.status == 201, reply.body
        found[name] = reply.json["id"]
    return found


def test_schedules_and_webhooks_go_along():
    """A schedule goes on with what it has behind it; a webhook with a secret is switched off."""
    with running("fast") as server, running("slow") as other:
        found = fill_standing(server)
        body = server.request("GET", "/api/v1/admin/export").body
        assert b"hunter2" not in body
        reply = send(other, body).json
        assert (reply["refused"], reply["schedules"], reply["webhooks"]) == ([], 3, 3)
        for name in ("plain", "paused", "rich"):
            before = server.get(f"/schedules/{found[name]}").json
            assert other.get(f"/schedules/{found[name]}").json == before
            (job,) = [line for line in lines_of(other) if line["kind"] == "job"]
            assert job["schedule_id"] == found["plain"]
        kept = ("url", "events", "queues", "retry_limit", "timeout", "created_at", "delivered")
        for name in ("open", "secret", "off"):
            before = server.get(f"/webhooks/{found[name]}").json
            after = other.get(f"/webhooks/{found[name]}").json
            assert {field: after[field] for field in kept} == {f: before[f] for f in kept}
        again = send(other, body).json
        assert {each["code"] for each in again["refused"]} == {"ALREADY_EXISTS"}
        assert (again["schedules"], again["webhooks"]) == (0, 0)
        # What is imported lives: the slot to come is fired, once.
        other.advance(300_000)
        assert other.get(f"/schedules/{found['plain']}").json["fired"] == 2
        assert other.get(f"/schedules/{found['paused']}").json["fired"] == 0


def test_imported_webhook_waits_for_its_secret():
    """Only one that had a secret; setting it and enabling clears the reason."""
    with running("fast") as server, running("fast") as other:
        found = fill_standing(server)
        send(other, server.request("GET", "/api/v1/admin/export").body)
        read = {
            name: other.get(f"/webhooks/{found[name]}").json for name in ("open", "secret", "off")
        }
        assert (read["open"]["enabled"], read["open"]["disabled_reason"]) == (True, None)
        assert (read["off"]["enabled"], read["off"]["disabled_reason"]) == (False, None)
        assert (read["secret"]["enabled"], read["secret"]["status"]) == (False, "disabled")
        assert "the secret" in read["secret"]["disabled_reason"]
        # A second export still knows that there was one.
        line = next(each for each in lines_of(other) if each.get("id") == found["secret"])
        assert line["has_secret"] is True
        body = {"url": read["secret"]["url"], "secret": "new"}
        changed = other.request("PUT", f"/api/v1/webhooks/{found['secret']}", body).json
        assert (changed["status"], changed["disabled_reason"]) == ("active", None)
