"""One job on the screen: what it is, why it waits, and what happens to it while one looks."""

from tests.support.process import ServerProcess
from tests.support.screen import Caller, Watch, watch


async def _open(screen: Watch, job_id: str) -> None:
    await screen.press("2")
    await screen.sees(job_id)
    await screen.press("enter")
    await screen.sees("Timeline", "Payload")


def test_a_job_is_followed_while_it_runs(server: ServerProcess, caller: Caller) -> None:
    """Enqueued is there at once; started and completed appear as they happen, with the result."""
    job_id = caller.enqueue("one.follow", payload={"to": "anna"}, tags={"tenant": "acme"})

    async def story(screen: Watch) -> None:
        await _open(screen, job_id)
        await screen.sees('"to": "anna"', "tag tenant", "acme", "enqueued", "○ pending")
        caller.fetch("one.follow", "crane-9")
        await screen.sees("started", "crane-9", "▶ active", "It is running")
        caller.call("POST", f"/ack/{job_id}", {"result": {"sent": True}})
        await screen.sees("✓ completed", '"sent": true', "How it ended")
        kinds = [event.type for event in screen.app.screen._events]  # type: ignore[attr-defined]
        assert kinds == ["enqueued", "started", "completed"]
        await screen.press("escape")
        await screen.sees("▸2 Jobs")
        await screen.until(lambda: "completed" in screen.line(job_id))

    watch(server.url, story, queue="one.follow")


def test_a_waiting_job_tells_why(server: ServerProcess, caller: Caller) -> None:
    """Each gate has its line; the one that is shut is marked."""
    job_id = caller.enqueue("one.why")
    caller.call("POST", "/queues/one.why/pause", {})

    async def story(screen: Watch) -> None:
        await _open(screen, job_id)
        await screen.sees("Why is it not running?")
        shut = [
            gate for gate in caller.call("GET", f"/jobs/{job_id}/why")["gates"] if not gate["ok"]
        ]
        assert shut
        for gate in shut:
            await screen.sees(f"✗ {gate['gate'].replace('_', ' ')}")

    watch(server.url, story, queue="one.why")


def test_a_dead_job_shows_its_errors(server: ServerProcess, caller: Caller) -> None:
    """The message and the backtrace of the last try, and retry from here."""
    job_id = caller.kill("one.dead", "no route to host")

    async def story(screen: Watch) -> None:
        await _open(screen, job_id)
        await screen.sees("Errors  1", "no route to host", "line two", "✗ dead")
        await screen.press("r")
        await screen.sees("Retry 1 job?")
        await screen.press("y")
        await screen.sees("○ pending")

    watch(server.url, story, queue="one.dead")
    assert caller.state(job_id) == "pending"


def test_a_job_that_is_removed_stays_on_the_screen(server: ServerProcess, caller: Caller) -> None:
    """Its page says that it is gone, and shows what was known last."""
    job_id = caller.enqueue("one.gone", payload={"to": "nobody"})

    async def story(screen: Watch) -> None:
        await _open(screen, job_id)
        caller.call("DELETE", f"/jobs/{job_id}")
        await screen.sees("this job is gone", '"to": "nobody"')
        await screen.press("q")
        await screen.sees("no job matches")

    watch(server.url, story, queue="one.gone")
