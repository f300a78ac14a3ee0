"""What a test holds: a Corvo of its own, and what it wants to know about it."""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Generator, Mapping
from contextlib import AsyncExitStack, contextmanager
from datetime import UTC, datetime
from typing import Any, Self, TypeVar

import msgspec

from corvo.testing.chaos import Chaos
from corvo.testing.delivery import Deliveries, Drained, KitError
from corvo.testing.house import House
from corvo.testing.matching import Match, TaskOrName, Wanted
from corvo.testing.transport import URL, AsyncHouseTransport, HouseTransport
from corvo_sdk.aio import AsyncClient
from corvo_sdk.app import Corvo
from corvo_sdk.client import Client
from corvo_sdk.duration import Duration, milliseconds
from corvo_sdk.handle import JobHandle
from corvo_sdk.protocol.call import Request
from corvo_sdk.types import Job

DELIVERIES_MAX = 10_000
READ_MAX = 1_000  # jobs or events of one call

Result = TypeVar("Result")


class Kit:
    """A server inside the test, the apps it serves, and time. Close it after use."""

    def __init__(self, *, chaos_seed: int | None = None, uses_threads: bool = False) -> None:
        self._house = House()
        self.chaos = None if chaos_seed is None else Chaos(chaos_seed)
        # Sync handlers run in the test's thread unless it asks for threads, as workers use.
        self.uses_threads = uses_threads
        self.client = Client(URL, transport=HouseTransport(self._house, self._after))
        self.aclient = AsyncClient(URL, transport=AsyncHouseTransport(self._house, self._aafter))
        self._apps: list[Corvo] = []
        self._is_inline = False
        self._is_draining = False

    def use(self, app: Corvo) -> None:
        """Serve an app: its enqueues come here until the kit is closed, its tasks run here."""
        if app not in self._apps:
            app.bind(client=self.client, aclient=self.aclient)
            self._apps.append(app)

    def close(self) -> None:
        """Give the apps back and stop. What the server has suffered is raised here."""
        for app in self._apps:
            app.bind()
        self._apps.clear()
        self._house.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- time -----------------------------------------------------------------------------------

    @property
    def now(self) -> datetime:
        """The time of the server; it moves only by `tick`."""
        return datetime.fromtimestamp(self._house.now_ms / 1_000, UTC)

    def tick(self, delay: Duration = 0) -> datetime:
        """Let time pass. Retries, schedules and leases happen on their way, each at its instant."""
        self._house.advance(milliseconds(delay, "delay"))
        return self.now

    # --- running --------------------------------------------------------------------------------

    async def drain(
        self,
        queue: str | None = None,
        *,
        advance: bool = False,
        raise_errors: bool = False,
        limit: int = DELIVERIES_MAX,
    ) -> Drained:
        """Run every job that can run now, and those they enqueue, until none is left.

        `advance` moves time on whenever nothing can run but something waits for its time; with
        `raise_errors` the first exception of a handler ends it, after its failure was reported.
        """
        return await self._drain(queue, advance, raise_errors, limit, None)

    def drain_sync(
        self,
        queue: str | None = None,
        *,
        advance: bool = False,
        raise_errors: bool = False,
        limit: int = DELIVERIES_MAX,
    ) -> Drained:
        """`drain` for a test without an event loop."""
        return _run(
            self.drain(queue, advance=advance, raise_errors=raise_errors, limit=limit), "drain"
        )

    async def wait_for(
        self, job: "JobHandle[Any] | Job | str", state: str = "completed", *, advance: bool = True
    ) -> Job:
        """Run jobs until this one is in a state; the error tells why it is not."""
        job_id = _id_of(job)

        def is_there() -> bool:
            return self.client.get_job(job_id).state == state

        await self._drain(None, advance, False, DELIVERIES_MAX, is_there)
        found = self.client.get_job(job_id)
        if found.state != state:
            raise KitError(self._explain(found, state))
        return found

    def wait_for_sync(
        self, job: "JobHandle[Any] | Job | str", state: str = "completed", *, advance: bool = True
    ) -> Job:
        """`wait_for` for a test without an event loop."""
        return _run(self.wait_for(job, state, advance=advance), "wait_for")

    @contextmanager
    def inline(self) -> Generator[None]:
        """Run jobs where they are enqueued: `enqueue` returns when all that follows has run."""
        before, self._is_inline = self._is_inline, True
        try:
            yield
        finally:
            self._is_inline = before

    # --- what is there --------------------------------------------------------------------------

    def jobs(
        self, task: TaskOrName = None, *, queue: str | None = None, state: str | None = None
    ) -> list[Job]:
        """Give the jobs that were enqueued, oldest first."""
        return self._fitting(Wanted(task, None, queue, state))

    def assert_enqueued(
        self,
        task: TaskOrName = None,
        match: Match | None = None,
        *,
        queue: str | None = None,
        state: str | None = None,
        count: int | None = None,
        **arguments: Any,
    ) -> Job:
        """Give the first job that fits: a task, a queue, a state, and parts of its payload.

        `count` asks for exactly that many. The error lists what was enqueued instead.
        """
        wanted = Wanted(task, match, queue, state, arguments)
        found = self._fitting(wanted)
        if found and count in {None, len(found)}:
            return found[0]
        many = "" if count is None else f" exactly {count} times, but {len(found)} times"
        raise KitError(f"no job was enqueued{many}: {wanted.render()}\n{self._listing()}")

    def refute_enqueued(
        self,
        task: TaskOrName = None,
        match: Match | None = None,
        *,
        queue: str | None = None,
        state: str | None = None,
        **arguments: Any,
    ) -> None:
        """Insist that no such job was enqueued."""
        wanted = Wanted(task, match, queue, state, arguments)
        if self._fitting(wanted):
            raise KitError(f"a job was enqueued: {wanted.render()}\n{self._listing()}")

    # --- inside ---------------------------------------------------------------------------------

    async def _drain(
        self,
        queue: str | None,
        advance: bool,  # noqa: FBT001 - one caller more than its public face
        raise_errors: bool,  # noqa: FBT001 - same
        limit: int,
        is_done: Callable[[], bool] | None,
    ) -> Drained:
        if not self._apps:
            raise KitError("no app is in use: corvo.use(app)")
        queues = [queue] if queue else sorted({name for app in self._apps for name in app.queues()})
        deliveries = Deliveries(
            self._house, self.client, self.aclient, self.chaos, uses_threads=self.uses_threads
        )
        before, self._is_draining = self._is_draining, True
        try:
            async with AsyncExitStack() as stack:
                states = [
                    (app, await stack.enter_async_context(app.running())) for app in self._apps
                ]
                while is_done is None or not is_done():
                    job = await deliveries.next(queues)
                    if job is None and not (advance and await self._move_on(queues)):
                        break
                    if job is None:
                        continue
                    app, state = self._owner(job.queue, job.tags, states)
                    await deliveries.deliver(job, app, state)
                    if raise_errors and deliveries.drained.errors:
                        raise deliveries.drained.errors[0]
                    if deliveries.drained.total >= limit:
                        raise KitError(f"{limit} deliveries and no end: does a job enqueue itself?")
                await deliveries.settle_late()
        finally:
            self._is_draining = before
        return deliveries.drained

    def _owner(
        self, queue: str, tags: Mapping[str, str], states: list[tuple[Corvo, Any]]
    ) -> tuple[Corvo, Any]:
        for app, state in states:
            if app.find(queue, tags) is not None:
                return app, state
        return states[0]

    async def _move_on(self, queues: list[str]) -> bool:
        """Let time pass until the next thing is due, if that is a job that waits for its time."""
        if not any(
            found["scheduled"] + found["retrying"] + found["active"]
            for found in self.client.request("GET", "/api/v1/queues").body
            if found["name"] in queues
        ):
            return False
        due_ms = await self._house.arun(self._house.next_due())
        if due_ms == 0:
            return False
        wait_ms = max(1, due_ms - self._house.now_ms)
        await self._house.arun(self._house.pass_time(wait_ms))
        return True

    def _after(self, request: Request) -> bool:
        """See a request that was served; say whether its answer is lost."""
        if self._runs_inline(request):
            if _has_loop():
                # The test's own loop can not run the handler: it waits for this very call.
                _in_thread(self.drain_sync)
            else:
                self.drain_sync()
        return self._loses(request)

    async def _aafter(self, request: Request) -> bool:
        if self._runs_inline(request):
            await self.drain()
        return self._loses(request)

    def _runs_inline(self, request: Request) -> bool:
        is_enqueue = request.method == "POST" and request.path.startswith("/api/v1/enqueue")
        return self._is_inline and is_enqueue and not self._is_draining

    def _loses(self, request: Request) -> bool:
        if self.chaos is None or request.method != "POST":
            return False
        verb = request.path.removeprefix("/api/v1/").partition("/")[0]
        names = {name.lower() for name in request.headers}
        is_repeatable = verb in {"ack", "fail", "release", "snooze", "heartbeat"} or (
            verb == "enqueue" and "idempotency-key" in names
        )
        return is_repeatable and self.chaos.loses_answer(request.path)

    def _all(self) -> list[Job]:
        ids: list[str] = []
        after = 0
        while True:
            query = {"type": "enqueued", "after_seq": str(after), "limit": str(READ_MAX)}
            page = self.client.request("GET", "/api/v1/cluster/events", query=query).body
            ids += [event["job_id"] for event in page["events"]]
            if len(page["events"]) < READ_MAX:
                break
            after = page["events"][-1]["seq"]
        found: list[Job] = []
        for start in range(0, len(ids), READ_MAX):
            body = {"job_ids": ids[start : start + READ_MAX]}
            jobs = self.client.request("POST", "/api/v1/jobs/bulk-get", body=body).body["jobs"]
            found += msgspec.convert(jobs, list[Job])
        return found

    def _fitting(self, wanted: Wanted) -> list[Job]:
        return [
            job for job in self._all() if wanted.fits(job.tags, job.queue, job.state, job.payload)
        ]

    def _listing(self) -> str:
        lines = [
            f"  {job.tags.get('task', '-')} in {job.queue}, {job.state}: "
            f"{msgspec.json.encode(job.payload).decode()}"
            for job in self._all()
        ]
        return "enqueued were:\n" + "\n".join(lines) if lines else "nothing was enqueued"

    def _explain(self, job: Job, state: str) -> str:
        why = self.client.request("GET", f"/api/v1/jobs/{job.id}/why").body
        closed = [gate for gate in why["gates"] if not gate["ok"]]
        details = "; ".join(str(gate.get("detail") or gate["gate"]) for gate in closed)
        errors = "".join(f"\n  attempt {error.attempt}: {error.error}" for error in job.errors)
        return f"job {job.id} is {job.state}, not {state}. {details}{errors}"


def _id_of(job: "JobHandle[Any] | Job | str") -> str:
    return job if isinstance(job, str) else job.id


def _has_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _run(work: Coroutine[Any, Any, Result], name: str) -> Result:
    if _has_loop():
        work.close()
        raise KitError(f"a loop runs here: await corvo.{name}(...) instead of {name}_sync")
    return asyncio.run(work)


def _in_thread(work: Callable[[], object]) -> None:
    raised: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001 - raised again where it belongs
            raised.append(error)

    thread = threading.Thread(target=run, name="corvo inline")
    thread.start()
    thread.join()
    if raised:
        raise raised[0]
