"""What the pages show is true of the server they look at."""

import asyncio

from tests.support.process import ServerProcess
from tests.support.screen import Caller, Watch, watch


def test_queues_page_shows_counts_and_states(server: ServerProcess, caller: Caller) -> None:
    """Each queue has its line: how many wait, how many run, and whether it is paused."""
    for _ in range(3):
        caller.enqueue("pages.mail")
    caller.fetch("pages.mail")
    caller.call("POST", "/queues/pages.still/pause", {})

    async def story(screen: Watch) -> None:
        await screen.sees("pages.mail", "pages.still")
        assert screen.cells("pages.mail")[1:5] == ["open", "2", "1", "0"]
        assert "paused" in screen.line("pages.still")
        assert "1 paused" in screen.text()

    watch(server.url, story, queue="pages.")


def test_overview_tells_where_the_server_stands(server: ServerProcess, caller: Caller) -> None:
    """Phase, version, totals, log index, sync and apply times and the lag of the search index."""
    caller.enqueue("overview")

    async def story(screen: Watch) -> None:
        await screen.sees("● serving", "version 0.1.0", "fsync always", "search ok, lag")
        index = caller.call("GET", "/cluster/status")["index"]
        await screen.until(lambda: f"index {index:,}" in screen.text())
        assert "sync p50" in screen.text()
        assert "apply p50" in screen.text()
        pending = sum(queue["pending"] for queue in caller.call("GET", "/queues"))
        assert f"pending {pending}" in screen.text()

    watch(server.url, story)


def test_throughput_is_drawn_as_it_happens(server: ServerProcess, caller: Caller) -> None:
    """A queue whose jobs are acked gets a rate and a line of blocks."""

    def work() -> None:
        caller.enqueue("pages.flow")
        caller.call("POST", f"/ack/{caller.fetch('pages.flow')['job_id']}", {})

    async def story(screen: Watch) -> None:
        work()
        await screen.sees("pages.flow")
        while "█" not in screen.line("pages.flow"):
            await asyncio.to_thread(work)  # beside the screen, as workers are
            await screen.pilot.pause()
        assert "wait p50" in screen.text()

    watch(server.url, story, queue="pages.fl")


def test_jobs_page_finds_what_one_types(server: ServerProcess, caller: Caller) -> None:
    """A filter of queue, state and words shows exactly the jobs that match."""
    wanted = caller.enqueue("find.me", payload={"to": "anna"})
    other = caller.enqueue("find.me", payload={"to": "bert"})
    elsewhere = caller.enqueue("find.other", payload={"to": "anna"})

    async def story(screen: Watch) -> None:
        await screen.press("2")
        await screen.sees(wanted, other, elsewhere)
        await screen.press("slash")
        await screen.paste("queue:find.me state:pending anna")
        await screen.press("enter")
        await screen.until(lambda: [job.id for job in screen.app.jobs_page.table.rows] == [wanted])
        assert "1 job" in screen.text()
        assert '{"to":"anna"}' in screen.line(wanted)
        await screen.press("escape")
        await screen.sees(other, elsewhere)

    watch(server.url, story)


def test_filter_that_can_not_be_read_changes_nothing(server: ServerProcess, caller: Caller) -> None:
    """The mistake is named with what would be right, and the list stays."""
    job_id = caller.enqueue("pages.typo")

    async def story(screen: Watch) -> None:
        await screen.press("2")
        await screen.sees(job_id)
        await screen.press("slash")
        await screen.paste("state:paused")
        await screen.press("enter")
        await screen.sees("paused is not a state", "pending active scheduled")
        assert job_id in screen.text()
        assert screen.app.jobs_page.filter_text == ""

    watch(server.url, story)


def test_jobs_are_turned_over_page_by_page(server: ServerProcess, caller: Caller) -> None:
    """Two hundred at a time; the next page goes on where the last one ended, and back again."""
    jobs = [{"queue": "pages.many", "payload": {"n": n}} for n in range(230)]
    made = caller.call("POST", "/enqueue/batch", {"jobs": jobs})["job_ids"]

    async def story(screen: Watch) -> None:
        table = screen.app.jobs_page.table
        await screen.press("2")
        await screen.until(lambda: len(table.rows) == 200)
        first = [job.id for job in table.rows]
        await screen.press("n")
        await screen.until(lambda: len(table.rows) == 30)
        assert sorted(first + [job.id for job in table.rows]) == sorted(made)
        assert "page 2" in screen.text()
        await screen.press("b")
        await screen.until(lambda: [job.id for job in table.rows] == first)

    watch(server.url, story, queue="pages.many")


def test_jobs_are_sorted_by_key_and_by_click(server: ServerProcess, caller: Caller) -> None:
    """`S` turns the order round; a click on a heading sorts by its column."""
    first = caller.enqueue("pages.sort", priority="normal")
    second = caller.enqueue("pages.sort", priority="critical")
    third = caller.enqueue("pages.sort", priority="high")

    async def story(screen: Watch) -> None:
        table = screen.app.jobs_page.table

        def order() -> list[str]:
            return [job.id for job in table.rows]

        await screen.press("2")
        await screen.until(lambda: order() == [third, second, first])
        await screen.press("S")
        await screen.until(lambda: order() == [first, second, third])
        heading = screen.line("priority").index("priority")
        await screen.pilot.click("#jobs-table", offset=(heading + 2, 0))
        await screen.until(lambda: order() == [second, third, first])
        assert "priority↓" in screen.text()

    watch(server.url, story, queue="pages.sort")


def test_failures_page_groups_dead_jobs_by_error(server: ServerProcess, caller: Caller) -> None:
    """Kinds of errors with their counts; below, the jobs of the one under the cursor."""
    broken = [caller.kill("pages.dead", "connection reset by peer") for _ in range(2)]
    odd = caller.kill("pages.dead", "division by zero")

    async def story(screen: Watch) -> None:
        await screen.press("3")
        await screen.sees("connection reset by peer", "division by zero", *broken)
        assert screen.cells("connection reset")[0] == "2"
        assert "2 of 2 jobs with this error" in screen.text()
        assert odd not in screen.text()
        await screen.press("down")
        await screen.sees(odd, "1 of 1 job with this error")
        await screen.misses(broken[0])
        await screen.press("enter")
        await screen.sees("filter state:dead kind:", odd)
        assert [job.id for job in screen.app.jobs_page.table.rows] == [odd]

    watch(server.url, story)


def test_workers_page_shows_who_works(server: ServerProcess, caller: Caller) -> None:
    """A worker has its host, version, slots and the number of jobs it holds."""
    caller.enqueue("pages.work")
    held = caller.fetch("pages.work", "crane-7", hostname="dock", version="2.1", concurrency=4)
    caller.call("POST", "/heartbeat", {"worker_id": "crane-7", "jobs": {held["job_id"]: {}}})

    async def story(screen: Watch) -> None:
        await screen.press("4")
        await screen.sees("crane-7")
        line = screen.line("crane-7")
        assert "● healthy" in line
        assert "dock" in line
        assert "2.1" in line
        assert screen.cells("crane-7")[2:4] == ["1", "4"]

    watch(server.url, story)


def test_what_a_job_carries_can_not_move_the_cursor(server: ServerProcess, caller: Caller) -> None:
    """Escape sequences and line ends in payloads and errors are shown as harmless signs."""
    job_id = caller.kill("pages.evil", "boom\x1b[2J\x1b]0;owned\x07\nsecond")

    async def story(screen: Watch) -> None:
        await screen.press("2")
        await screen.sees(job_id)
        assert "boom·[2J·]0;owned·⏎second" in screen.line(job_id)
        await screen.press("enter")
        await screen.sees("Timeline", "boom·[2J")
        assert "\x1b" not in screen.text()

    watch(server.url, story, queue="pages.evil")


def test_a_small_terminal_keeps_what_matters(server: ServerProcess, caller: Caller) -> None:
    """Columns give way until name, state and counts are left, and come back with the width."""
    caller.enqueue("pages.small")

    async def story(screen: Watch) -> None:
        await screen.sees("pages.small", "throughput", "oldest")
        await screen.pilot.resize_terminal(60, 16)
        await screen.misses("throughput")
        assert "pages.small" in screen.text()
        assert "pending" in screen.text()
        assert max(len(line) for line in screen.text().splitlines()) <= 60
        await screen.pilot.resize_terminal(160, 40)
        await screen.sees("throughput")

    watch(server.url, story, queue="pages.small")


def test_help_lists_the_keys(server: ServerProcess) -> None:
    """The question mark opens a page with all keys, and closes it."""

    async def story(screen: Watch) -> None:
        await screen.sees("● serving")
        await screen.press("question_mark")
        await screen.sees("Everywhere", "mark all that are shown", "Filter of Jobs")
        await screen.press("escape")
        await screen.misses("Everywhere")

    watch(server.url, story)
