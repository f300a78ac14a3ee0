"""The page of metrics: true, bounded, and only rising where it says so."""

import json
import re
import urllib.request
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from tests.support.process import ServerProcess
from tests.support.server import LANES, Server, running

SECRET = "a-queue-of-mine"


def scrape(server: Server) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    server.wait_until(lambda: server.live.seq == server.engine.seq)
    reply = server.get("/metrics")
    assert reply.headers["content-type"].startswith("text/plain; version=0.0.4")
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(reply.body.decode())
        for sample in family.samples
    }


def value(found: dict, name: str, **labels: str) -> float:
    return found.get((name, tuple(sorted(labels.items()))), 0.0)


def work(server: Server, count: int) -> None:
    for _ in range(count):
        job = server.enqueue(SECRET)
        server.fetch(SECRET)
        server.advance(250)
        server.post(f"/ack/{job}")


def test_the_page_tells_what_the_server_did():
    """Depth, age, throughput, waits and runs of a queue; the same through both lanes."""
    for lane in LANES:
        with running(lane) as server:
            work(server, 3)
            server.enqueue(SECRET)
            server.advance(30_000)
            found = scrape(server)
            queue = {"queue": SECRET}
            assert value(found, "corvo_queue_jobs", state="completed", **queue) == 3
            assert value(found, "corvo_jobs", state="pending") == 1
            assert value(found, "corvo_queue_oldest_pending_age_seconds", **queue) == 30
            assert value(found, "corvo_throughput_enqueued_total") == 4
            assert value(found, "corvo_queue_completed_total", **queue) == 3
            assert value(found, "corvo_queue_run_seconds_count", **queue) == 3
            assert value(found, "corvo_queue_run_seconds_sum", **queue) == 0.75
            assert value(found, "corvo_queue_run_seconds_bucket", le="0.25", **queue) == 3
            assert value(found, "corvo_queue_run_seconds_bucket", le="0.1", **queue) == 0
            assert value(found, "corvo_queue_wait_seconds_count", **queue) == 3
            assert value(found, "corvo_raft_applied_index") == server.index
            assert value(found, "corvo_log_fsyncs_total") > 0
            assert value(found, "corvo_raft_apply_time_seconds_count") > 0
            assert value(found, "corvo_workers_registered") == 1
            assert value(found, "corvo_validator_mismatches_total") == 0


def test_requests_are_counted_by_route_pattern_and_status():
    """Ids and names of queues never become labels of a route; both lanes count alike."""
    for lane in LANES:
        with running(lane) as server:
            work(server, 2)
            server.post("/ack/job_x")
            server.get("/jobs/job_x")
            server.get(f"/queues/{SECRET}")
            server.get("/nonsense/" + SECRET)
            found = scrape(server)
            name = "corvo_http_requests_total"
            ack = {"route": "/api/v1/ack/{id}", "method": "POST"}
            assert value(found, name, status="200", **ack) == 2
            assert value(found, name, status="404", **ack) == 1
            job = {"route": "/api/v1/jobs/{id}", "method": "GET"}
            assert value(found, name, status="404", **job) == 1
            queue = {"route": "/api/v1/queues/{name}", "method": "GET"}
            assert value(found, name, status="200", **queue) == 1
            assert value(found, name, route="(none)", method="GET", status="404") == 1
            routes = {dict(labels)["route"] for key, labels in found if key == name}
            assert not [route for route in routes if SECRET in route or "job_" in route]


def test_counters_only_rise(server: Server):
    """Also when queues are deleted and jobs purged."""
    work(server, 3)
    before = scrape(server)
    server.request("DELETE", f"/api/v1/queues/{SECRET}?confirm=true")
    server.advance(8 * 86_400_000)
    work(server, 1)
    after = scrape(server)
    rising = [key for key in before if re.search(r"_(total|count|sum|bucket)$", key[0])]
    assert len(rising) > 100
    gauges = {"corvo_queues_total"}  # the name is older than the custom
    fallen = [key for key in rising if key[0] not in gauges and after.get(key, 0) < before[key]]
    assert fallen == []


def test_queues_beyond_the_bound_share_a_label(server: Server):
    """A client that invents queues cannot make the page grow without bound."""
    server.live.figures._queues_max = 5
    for number in range(20):
        server.enqueue(f"q{number}")
    found = scrape(server)
    queues = {dict(labels)["queue"] for key, labels in found if key == "corvo_queue_enqueued_total"}
    assert len(queues) == 6
    assert value(found, "corvo_queue_enqueued_total", queue="*") == 15
    assert value(found, "corvo_throughput_enqueued_total") == 20


def test_every_slow_answer_names_its_request(server: Server):
    """A harmless id of the client is kept, any other is replaced."""
    reply = server.request("GET", "/api/v1/queues", headers={"x-request-id": "abc-1"})
    assert reply.headers["x-request-id"] == "abc-1"
    for given in ("a b", "x" * 65, ""):
        reply = server.request("GET", "/api/v1/queues", headers={"x-request-id": given})
        assert re.fullmatch(r"req_[0-9a-f]{16}", reply.headers["x-request-id"])


def test_workers_are_told_with_both_of_their_times(server: Server):
    """Last fetch and last heartbeat are two things; the stale ones are removed in the end."""
    server.enqueue()
    claim = server.fetch(worker="w1", version="1.2", hostname="h", concurrency=4)
    server.advance(5_000)
    server.post("/heartbeat", {"worker_id": "w1", "jobs": {claim["job_id"]: {}}})
    (worker,) = server.get("/workers").json
    assert worker["last_fetch_at"] < worker["last_heartbeat_at"]
    assert (worker["jobs"], worker["version"], worker["status"]) == (1, "1.2", "healthy")
    server.advance(61_000)
    assert server.get("/workers").json[0]["status"] == "stale"
    server.advance(600_000)

    async def tidy() -> None:
        server.engine.workers.tidy()

    server.run(tidy)
    assert server.get("/workers").json == []


ROOT = Path(__file__).resolve().parents[3]


def families(server: Server) -> set[str]:
    server.get("/metrics")
    text = server.get("/metrics").body.decode()
    return set(re.findall(r"^# TYPE (\S+)", text, flags=re.MULTILINE))


def documented() -> list[re.Pattern[str]]:
    """Names on the page of the reference: `{a,b}` is a choice, a star is anything."""
    page = (ROOT / "docs/reference/metrics.md").read_text(encoding="utf-8")
    found: list[re.Pattern[str]] = []
    for name in re.findall(r"`(corvo_[a-z_{},*]+)`", page):
        pattern = name.replace("{", "(").replace("}", ")").replace(",", "|").replace("*", ".*")
        found.append(re.compile(pattern))
    return found


def test_every_metric_is_on_the_page_of_the_reference(server: Server):
    """And what the page names is there."""
    work(server, 1)
    names = families(server)
    patterns = documented()
    assert [name for name in names if not any(p.fullmatch(name) for p in patterns)] == []


def test_the_dashboard_draws_what_exists(tmp_path: Path):
    """Every metric a panel asks for is one the whole server gives out."""
    with ServerProcess(tmp_path, "--ephemeral") as process:
        url = process.url + "/api/v1/metrics"
        for _ in range(2):
            with urllib.request.urlopen(url) as response:
                text = response.read().decode()
        process.stop()
    names = set(re.findall(r"^# TYPE (\S+)", text, flags=re.MULTILINE))
    board = json.loads((ROOT / "deploy/grafana/corvo.json").read_text(encoding="utf-8"))
    asked: set[str] = set()
    for panel in board["panels"]:
        for target in panel.get("targets", ()):
            asked |= set(re.findall(r"corvo_[a-z_]+", target["expr"]))
    assert len(asked) > 30
    known = names | {name + "_bucket" for name in names}
    assert asked <= known
    places = [(p["gridPos"]["x"], p["gridPos"]["y"]) for p in board["panels"]]
    assert len(set(places)) == len(places)


def test_every_route_has_times_also_the_hot_ones():
    """As many as answers, of both lanes, in rising buckets whose sum is plausible."""
    for lane in LANES:
        with running(lane) as server:
            for _ in range(3):
                server.enqueue()
            server.fetch()
            server.get("/queues")
            found = scrape(server)
            name = "corvo_http_request_duration_seconds"
            for route, count in (("enqueue", 3), ("fetch", 1), ("queues", 1)):
                labels = {"route": f"/api/v1/{route}"}
                assert value(found, f"{name}_count", **labels) == count
                assert 0 < value(found, f"{name}_sum", **labels) < 60
                bounds = sorted(
                    (float(dict(pairs)["le"]), count)
                    for (sample, pairs), count in found.items()
                    if sample == f"{name}_bucket" and dict(pairs)["route"] == labels["route"]
                )
                counts = [count for _, count in bounds]
                assert counts == sorted(counts)
                assert (bounds[-1][1], bounds[-1][0]) == (count, float("inf"))
                assert bounds[0][0] < 0.0001


def test_a_fetch_that_waits_counts_its_waiting():
    """The histogram of fetches is of what a worker sees, not of what the server does."""
    with running("fast") as server:
        body = {"queues": ["q"], "worker_id": "w", "timeout": "300ms"}
        assert server.post("/fetch", body).status == 204
        found = scrape(server)
        name = "corvo_http_request_duration_seconds_bucket"
        labels = {"route": "/api/v1/fetch", "le": str((1 << 28) / 1e9)}
        assert value(found, name, **labels) == 0
