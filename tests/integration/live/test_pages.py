"""Pages of events, timelines of jobs, throughput."""

import pytest

from tests.support.server import START_MS, Server


def test_a_page_of_events_goes_on_where_the_last_one_ended(server: Server):
    """Following `next_after_seq` reads every event once."""
    for _ in range(25):
        server.enqueue()
    found: list[int] = []
    after = 0
    while True:
        page = server.get(f"/cluster/events?after_seq={after}&limit=7").json
        if not page["events"]:
            break
        found += [event["seq"] for event in page["events"]]
        after = page["next_after_seq"]
    assert found == list(range(1, server.engine.seq + 1))
    assert page["last_seq"] == server.engine.seq


def test_a_page_takes_the_filters_of_a_stream(server: Server):
    """And says how far it has looked."""
    server.enqueue("a")
    server.enqueue("b")
    page = server.get("/cluster/events?queue=b&type=enqueued").json
    assert [event["queue"] for event in page["events"]] == ["b"]
    assert page["next_after_seq"] == page["last_seq"]


@pytest.mark.parametrize("query", ["limit=0", "limit=1001", "limit=x", "after_seq=-1", "type=x"])
def test_a_bad_page_is_400(server: Server, query: str):
    """The field is named."""
    reply = server.get("/cluster/events?" + query)
    assert (reply.status, reply.json["field"]) == (400, query.partition("=")[0])


def test_a_job_has_a_timeline(server: Server):
    """What happened to it, oldest first, and nothing of others."""
    job = server.enqueue()
    server.enqueue()
    server.fetch(worker="w1")
    server.post(f"/fail/{job}", {"error": "oops"})
    found = server.get(f"/jobs/{job}/events").json
    assert found["job_id"] == job
    assert found["complete"] is True
    assert [event["type"] for event in found["events"]] == [
        "enqueued",
        "started",
        "failed",
        "retrying",
    ]
    assert found["events"][2]["data"]["error"] == "oops"
    assert found["events"][3]["data"]["due_at"].endswith("Z")
    assert server.get("/jobs/job_01ARZ3NDEKTSV4RRFFQ69G5FAV/events").status == 404


def test_throughput_is_sixty_minutes_of_counts(server: Server):
    """Per queue and in all, each minute by itself, the current one last."""
    job = server.enqueue("a")
    server.enqueue("b")
    server.fetch("a")
    server.advance(45_000)  # into the next minute, within the lease
    server.post(f"/ack/{job}")
    server.wait_until(lambda: server.live.seq == server.engine.seq)
    everything = server.get("/metrics/throughput").json
    assert (everything["queue"], len(everything["minutes"])) == (None, 60)
    before, now = everything["minutes"][-2:]
    assert (before["enqueued"], before["started"], before["completed"]) == (2, 1, 0)
    assert (now["enqueued"], now["completed"]) == (0, 1)
    one = server.get("/metrics/throughput?queue=a").json["minutes"]
    assert [row["enqueued"] for row in one[-2:]] == [1, 0]
    nobody = server.get("/metrics/throughput?queue=nobody").json["minutes"]
    assert not any(row["enqueued"] for row in nobody)
    assert server.get("/metrics/throughput?queue=a%20b").status == 400
    assert START_MS > 0
