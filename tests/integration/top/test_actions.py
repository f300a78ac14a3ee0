"""What is done on the screen is done to the server: after a question, and no more than asked."""

from tests.support.process import ServerProcess
from tests.support.screen import Caller, Watch, watch


def _rows(screen: Watch) -> list[str]:
    return [job.id for job in screen.app.jobs_page.table.rows]


def test_marked_jobs_are_cancelled_and_no_others(server: ServerProcess, caller: Caller) -> None:
    """Two of three are marked, the question names two, and the third stays as it was."""
    first, second, third = (caller.enqueue("act.cancel") for _ in range(3))

    async def story(screen: Watch) -> None:
        await screen.press("2")
        await screen.until(lambda: _rows(screen) == [third, second, first])
        await screen.press("space", "space")
        assert screen.line(third).startswith(" ●")
        assert "2 marked" in screen.text()
        await screen.press("c")
        await screen.sees("Cancel 2 jobs?", third, second)
        await screen.press("y")
        await screen.sees("cancelled 2 jobs")
        await screen.until(lambda: "cancelled" in screen.line(second))
        assert screen.app.jobs_page.table.marks == set()

    watch(server.url, story, queue="act.cancel")
    assert [caller.state(job) for job in (first, second, third)] == [
        "pending",
        "cancelled",
        "cancelled",
    ]


def test_a_question_answered_with_no_changes_nothing(server: ServerProcess, caller: Caller) -> None:
    """Escape, `n` and Enter on the button that has the focus all mean no."""
    job_id = caller.enqueue("act.no")

    async def story(screen: Watch) -> None:
        await screen.press("2")
        await screen.sees(job_id)
        for key in ("n", "escape", "enter"):
            await screen.press("d")
            await screen.sees("Delete 1 job?")
            await screen.press(key)
            await screen.misses("Delete 1 job?")

    watch(server.url, story, queue="act.no")
    assert caller.state(job_id) == "pending"


def test_deleted_jobs_come_back_with_undo(server: ServerProcess, caller: Caller) -> None:
    """`d` removes the marked jobs, `u` brings them back."""
    job_ids = [caller.enqueue("act.delete") for _ in range(2)]

    async def story(screen: Watch) -> None:
        await screen.press("2")
        await screen.until(lambda: len(_rows(screen)) == 2)
        await screen.press("a", "d")
        await screen.sees("Delete 2 jobs?")
        await screen.press("y")
        await screen.sees("deleted 2 jobs", "u takes it back")
        assert [caller.state(job) for job in job_ids] == ["gone", "gone"]
        await screen.press("u")
        await screen.sees("brought back 2 jobs")
        await screen.until(lambda: len(_rows(screen)) == 2)

    watch(server.url, story, queue="act.delete")
    assert [caller.state(job) for job in job_ids] == ["pending", "pending"]


def test_jobs_are_moved_to_the_queue_one_types(server: ServerProcess, caller: Caller) -> None:
    """`m` asks for a queue, and puts the job there."""
    job_id = caller.enqueue("act.move")

    async def story(screen: Watch) -> None:
        await screen.press("2")
        await screen.sees(job_id)
        await screen.press("m")
        await screen.sees("Move 1 job to which queue?")
        await screen.paste("act.target")
        await screen.press("enter")
        await screen.sees("moved 1 job")

    watch(server.url, story, queue="act.move")
    assert caller.job(job_id)["queue"] == "act.target"


def test_a_kind_of_error_is_retried_as_a_whole(server: ServerProcess, caller: Caller) -> None:
    """`r` on a kind of error asks with the number of its jobs; other kinds stay dead."""
    dead = [caller.kill("act.retry", "the disk of the printer is full") for _ in range(3)]
    other = caller.kill("act.retry", "paper jam")

    async def story(screen: Watch) -> None:
        await screen.press("3")
        await screen.sees("the disk of the printer", "paper jam")
        await screen.press("slash")
        await screen.paste("printer")
        await screen.press("enter")
        await screen.misses("paper jam")
        await screen.press("r")
        await screen.sees("Retry 3 jobs?", "the disk of the printer is full")
        await screen.press("y")
        await screen.sees("retried 3 jobs", "no kind of error mentions printer")

    watch(server.url, story)
    assert [caller.state(job) for job in dead] == ["pending"] * 3
    assert caller.state(other) == "dead"


def test_all_that_match_means_those_on_other_pages_too(
    server: ServerProcess, caller: Caller
) -> None:
    """`A` is about the filter: the server counts what matches now, not what is shown."""
    jobs = [{"queue": "act.all"}] * 210
    caller.call("POST", "/enqueue/batch", {"jobs": jobs})
    caller.enqueue("act.other")

    async def story(screen: Watch) -> None:
        await screen.press("2")
        await screen.until(lambda: len(_rows(screen)) == 200)
        await screen.press("A")
        await screen.sees("ALL that match are meant")
        await screen.press("d")
        await screen.sees("Delete 210 jobs?", "queue:act.all")
        await screen.press("y")
        await screen.sees("deleted 210 jobs", "no job matches")

    watch(server.url, story, queue="act.all")
    assert caller.queue("act.all")["pending"] == 0
    assert caller.queue("act.other")["pending"] == 1


def test_what_the_server_skips_is_told(server: ServerProcess, caller: Caller) -> None:
    """A pending job can not be retried: the line says how many were skipped and why."""
    job_id = caller.enqueue("act.skip")

    async def story(screen: Watch) -> None:
        await screen.press("2")
        await screen.sees(job_id)
        await screen.press("r")
        await screen.sees("Retry 1 job?")
        await screen.press("y")
        await screen.sees("retried 0 jobs · skipped 1 (1 invalid state)")

    watch(server.url, story, queue="act.skip")
    assert caller.state(job_id) == "pending"


def test_queues_are_paused_and_resumed(server: ServerProcess, caller: Caller) -> None:
    """`p` pauses the queue under the cursor, and all marked ones; again, it resumes them."""
    caller.enqueue("act.pause.one")
    caller.enqueue("act.pause.two")

    async def story(screen: Watch) -> None:
        await screen.sees("act.pause.one", "act.pause.two")
        await screen.press("p")
        await screen.sees("paused 1 queue")
        await screen.until(lambda: caller.queue("act.pause.one")["paused"])
        await screen.until(lambda: "‖ paused" in screen.line("act.pause.one"))
        await screen.press("a", "p")
        await screen.until(lambda: caller.queue("act.pause.two")["paused"])
        await screen.until(lambda: "‖ paused" in screen.line("act.pause.two"))
        await screen.press("a", "p")
        await screen.sees("resumed 2 queues")

    watch(server.url, story, queue="act.pause")
    assert not caller.queue("act.pause.one")["paused"]
    assert not caller.queue("act.pause.two")["paused"]


def test_enter_on_a_queue_shows_its_jobs(server: ServerProcess, caller: Caller) -> None:
    """The Jobs page opens with the filter of the queue."""
    mine = caller.enqueue("act.enter")
    other = caller.enqueue("act.elsewhere")

    async def story(screen: Watch) -> None:
        await screen.sees("act.enter")
        await screen.press("enter")
        await screen.sees("filter queue:act.enter", mine)
        assert other not in screen.text()

    watch(server.url, story, queue="act.ente")


def test_the_id_of_a_job_is_copied(server: ServerProcess, caller: Caller) -> None:
    """`y` puts the id on the clipboard."""
    job_id = caller.enqueue("act.copy")

    async def story(screen: Watch) -> None:
        await screen.press("2")
        await screen.sees(job_id)
        await screen.press("y")
        await screen.sees(f"copied {job_id}")
        assert screen.app.clipboard == job_id

    watch(server.url, story, queue="act.copy")


def test_the_next_state_is_one_key_away(server: ServerProcess, caller: Caller) -> None:
    """`f` shows pending jobs, then active ones, and so on through all states."""
    waiting = caller.enqueue("act.state")
    running = caller.enqueue("act.state", priority="critical")
    assert caller.fetch("act.state")["job_id"] == running

    async def story(screen: Watch) -> None:
        await screen.press("2")
        await screen.sees(waiting, running)
        await screen.press("f")
        await screen.until(lambda: _rows(screen) == [waiting])
        await screen.press("f")
        await screen.until(lambda: _rows(screen) == [running])
        assert "filter queue:act.state state:active" in screen.text()

    watch(server.url, story, queue="act.state")
