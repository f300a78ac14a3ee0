"""A server that goes away and comes back, and one with ten thousand queues."""

import asyncio
from pathlib import Path

from tests.support.process import ServerProcess
from tests.support.screen import Caller, Watch, watch


def _again(data_dir: Path, port: int) -> ServerProcess:
    """The same server on the same address; of two flags the last one counts."""
    return ServerProcess(data_dir, "--bind", f"127.0.0.1:{port}")


def test_a_restart_is_survived_with_the_last_figures(tmp_path: Path) -> None:
    """While the server is away its figures stay and it says so; afterwards everything goes on."""
    server = ServerProcess(tmp_path / "data").start()
    caller = Caller(server.port)
    caller.enqueue("restart.me")

    async def story(screen: Watch) -> None:
        await screen.sees("restart.me", "● serving")
        await asyncio.to_thread(server.kill)
        await screen.sees("○ reconnecting", "restart.me")
        await screen.press("2")
        await screen.sees("reconnecting")
        await screen.press("1")
        with _again(tmp_path / "data", server.port):
            caller.enqueue("restart.me")
            await screen.sees("● serving")
            await screen.until(lambda: "2" in screen.cells("restart.me"))
            assert "reconnecting" not in screen.text()

    watch(server.url, story)


def test_a_followed_job_is_followed_across_a_restart(tmp_path: Path) -> None:
    """No event of the job is missed and none is shown twice."""
    server = ServerProcess(tmp_path / "data").start()
    caller = Caller(server.port)
    job_id = caller.enqueue("restart.job")

    async def story(screen: Watch) -> None:
        await screen.sees("restart.job")
        await screen.press("2")
        await screen.sees(job_id)
        await screen.press("enter")
        await screen.sees("enqueued")
        await asyncio.to_thread(server.kill)
        await screen.sees("reconnecting …")
        with _again(tmp_path / "data", server.port):
            caller.fetch("restart.job")
            caller.call("POST", f"/ack/{job_id}", {})
            await screen.sees("✓ completed", "started")
            events = screen.app.screen._events  # type: ignore[attr-defined]
            await screen.until(
                lambda: [event.type for event in events] == ["enqueued", "started", "completed"]
            )

    watch(server.url, story)


def test_a_server_that_is_not_there_yet_is_waited_for(tmp_path: Path) -> None:
    """Started first, `top` says so and connects later; an empty server tells what would fill it."""
    first = ServerProcess(tmp_path / "data").start()
    first.stop()

    async def story(screen: Watch) -> None:
        await screen.sees("○ connecting", "can not reach")
        with _again(tmp_path / "data", first.port):
            await screen.sees("● serving", "No queues yet", f"curl -s {first.url}/api/v1/enqueue")
            await screen.press("2")
            await screen.sees("No jobs. Enqueue one:")
            await screen.press("3")
            await screen.sees("No dead jobs.")
            await screen.press("4")
            await screen.sees("No workers.")

    watch(first.url, story)


def test_ten_thousand_queues_stay_usable(tmp_path: Path) -> None:
    """The last is one key away, a filter finds one, only rows in sight are drawn.

    The server has no search index, which takes nothing from the page of queues.
    """
    with ServerProcess(tmp_path / "data", "--view", "off") as server:
        caller = Caller(server.port)
        for part in range(2):
            names = [f"tenant.{part * 5000 + n:05d}" for n in range(5000)]
            caller.call("POST", "/enqueue/batch", {"jobs": [{"queue": name} for name in names]})

        async def story(screen: Watch) -> None:
            table = screen.app.queues_page.table
            await screen.until(lambda: len(table.rows) == 10_000)
            drawn: list[int] = []
            draw = table._line
            table._line = lambda index, width: (drawn.append(index), draw(index, width))[1]  # type: ignore[method-assign]
            await screen.press("end")
            await screen.sees("tenant.09999")
            assert table.cursor == 9_999
            assert len(set(drawn)) <= 2 * screen.app.size.height
            await screen.press("slash")
            await screen.paste("tenant.04711")
            await screen.press("enter")
            await screen.sees("1 of 10,000 queues", "search off")
            # Pages of the search index say what is wrong; what the core knows is shown as ever.
            await screen.press("2")
            await screen.until(lambda: screen.app._trouble)
            await screen.sees(screen.app._trouble)
            await screen.press("1")
            await screen.sees("tenant.04711")

        watch(server.url, story)
