"""The runner of bulk operations: finds their jobs, takes their steps, tells who is watching.

Everything that counts is in the replicated record of an operation. The runner only asks for the
next step, so it may be stopped and started at any moment: after a restart it looks up what is not
finished and goes on. Operations take turns, one step each.
"""

import asyncio
from collections.abc import Generator
from contextlib import contextmanager
from typing import Protocol

from msgspec import Struct

from corvo.errors import CorvoError, OverloadedError, RequestError, UnavailableError
from corvo.model import bulk as bk
from corvo.model import limits, outcome
from corvo.model.bulk import Bulk, BulkTask
from corvo.model.command import AbortBulk, Command, FillBulk, StartBulk, StepBulk, UndoBulk
from corvo.model.outcome import BulkChanged, Outcome, Rejected

FILL_TARGETS = 5_000  # per command: 85 kB of log
LOOK_S = 1.0  # how often watchers and deferred operations look again, whatever happens
_INTERRUPTED = "the server stopped before all jobs were written down; nothing was changed"


class Found(Struct, frozen=True):
    """Some jobs that match a filter: sixteen bytes of id each, and a byte of state each."""

    ids: bytes
    states: bytes
    cursor: bytes  # where to go on; empty: these were the last


class Finder(Protocol):
    """Finds jobs by a filter; the search side implements it."""

    async def __call__(
        self, ns: int, filter_text: bytes, cursor: bytes, limit: int, index: int
    ) -> Found:
        """Return up to `limit` matches behind a cursor, as of `index` or later, none twice.

        Raises `RequestError` for a filter that can not be understood and `UnavailableError` while
        there is nobody to ask.
        """
        ...


class Reads(Protocol):
    """The part of the engine's reads the runner uses."""

    def bulk(self, ns: int, bulk_id: bytes) -> Bulk | None:
        """Return an operation."""
        ...

    def bulks_unfinished(self) -> list[tuple[int, bytes]]:
        """Return namespace and id of every operation that has something left to do."""
        ...


class Engine(Protocol):
    """The part of the engine the runner uses."""

    @property
    def read(self) -> Reads:
        """Applied state."""
        ...

    @property
    def index(self) -> int:
        """The last applied entry."""
        ...

    @property
    def is_serving(self) -> bool:
        """Whether steps are welcome."""
        ...

    async def perform(self, command: Command) -> tuple[Outcome, int]:
        """Submit and wait."""
        ...

    async def sweep(self, commands: list[Command]) -> list[Outcome]:
        """Submit past the bounds of admission, and wait."""
        ...


class Plan(Struct, frozen=True):
    """What an operation is started with."""

    ns: int
    id: bytes
    task: BulkTask
    undo_ms: int
    ids: bytes = b""
    states: bytes = b""
    unknown: int = 0  # names that cannot be a job's
    filter: bytes = b""  # when given, ids and states are its first page
    cursor: bytes = b""  # behind the first page; empty: the filter matches nothing more


class BulkRunner:
    """All bulk operations of one server."""

    def __init__(self, engine: Engine, find: Finder | None = None) -> None:
        self._engine = engine
        self._find = find
        self._unfinished: dict[tuple[int, bytes], int] = {}  # to the size of the next step
        self._filling: set[bytes] = set()  # a request is still writing down their jobs
        self._watchers: dict[bytes, set[asyncio.Event]] = {}
        self._watchers_count = 0
        self._woken = asyncio.Event()
        self._has_looked = False
        self.steps_total = 0
        self.jobs_total = 0

    # --- what the API asks for ------------------------------------------------------------------

    async def find(self, ns: int, filter_text: bytes, cursor: bytes, limit: int) -> Found:
        """Look up jobs by a filter, at least as fresh as everything answered so far."""
        if self._find is None:
            raise UnavailableError(
                "jobs can not be found by a filter: the view is off",
                code="VIEW_DOWN",
                hint="name the jobs in job_ids, or start the server with its view",
            )
        return await self._find(ns, filter_text, cursor, limit, self._engine.index)

    async def start(self, plan: Plan) -> tuple[Outcome, int]:
        """Write an operation down and begin it. Raises when the server takes no more of them."""
        if len(self._unfinished) >= limits.BULK_OPERATIONS_MAX:
            raise OverloadedError(
                f"{limits.BULK_OPERATIONS_MAX} bulk operations are under way", retry_after_ms=1_000
            )
        self._filling.add(plan.id)
        try:
            return await self._write_down(plan)
        finally:
            self._filling.discard(plan.id)
            self._enter(plan.ns, plan.id)

    async def _write_down(self, plan: Plan) -> tuple[Outcome, int]:
        step = FILL_TARGETS
        is_all = not plan.cursor and len(plan.states) <= step
        start = StartBulk(
            plan.ns,
            plan.id,
            plan.task,
            plan.ids[: step * bk.ID_BYTES],
            plan.states[:step],
            is_all,
            plan.filter,
            plan.unknown,
            plan.undo_ms,
            plan.cursor,
        )
        answer, index = await self._engine.perform(start)
        for first in range(step, len(plan.states), step):
            if not isinstance(answer, BulkChanged):
                break
            ids = plan.ids[first * bk.ID_BYTES : (first + step) * bk.ID_BYTES]
            states = plan.states[first : first + step]
            is_sealed = not plan.cursor and first + step >= len(plan.states)
            number = answer.bulk.chunks
            fill = FillBulk(plan.ns, plan.id, number, ids, states, is_sealed, plan.cursor)
            answer, index = await self._engine.perform(fill)
        return answer, index

    async def abort(self, ns: int, bulk_id: bytes) -> tuple[Outcome, int]:
        """Stop an operation where it stands."""
        answer, index = await self._engine.perform(AbortBulk(ns, bulk_id))
        self._notify(bulk_id)
        return answer, index

    async def undo(self, ns: int, bulk_id: bytes) -> tuple[Outcome, int]:
        """Begin to take an operation back."""
        answer, index = await self._engine.perform(UndoBulk(ns, bulk_id))
        self._enter(ns, bulk_id)
        return answer, index

    @contextmanager
    def watch(self, bulk_id: bytes) -> Generator[asyncio.Event]:
        """Be told when an operation moves on; the event is the watcher's own, and it clears it."""
        if self._watchers_count >= limits.BULK_WATCHERS_MAX:
            raise OverloadedError("too many clients watch bulk operations", retry_after_ms=1_000)
        moved = asyncio.Event()
        self._watchers.setdefault(bulk_id, set()).add(moved)
        self._watchers_count += 1
        try:
            yield moved
        finally:
            self._watchers_count -= 1
            watchers = self._watchers[bulk_id]
            watchers.discard(moved)
            if not watchers:
                del self._watchers[bulk_id]

    # --- the loop -------------------------------------------------------------------------------

    async def run(self) -> None:
        """Take steps until cancelled; a failure goes upward."""
        while True:
            moved = await self.advance()
            if moved:
                # One turn for everybody else between two rounds of steps.
                await asyncio.sleep(0)
                continue
            self._woken.clear()
            try:
                async with asyncio.timeout(LOOK_S):
                    await self._woken.wait()
            except TimeoutError:
                pass

    async def advance(self) -> int:
        """Take one step of every operation that can go on; return how many could."""
        if not self._engine.is_serving:
            return 0
        if not self._has_looked:
            self._has_looked = True
            for ns, bulk_id in self._engine.read.bulks_unfinished():
                self._enter(ns, bulk_id)
        moved = 0
        for ns, bulk_id in list(self._unfinished):
            moved += await self._advance_one(ns, bulk_id)
        return moved

    async def _advance_one(self, ns: int, bulk_id: bytes) -> int:
        bulk = self._engine.read.bulk(ns, bulk_id)
        is_clearing = bulk is not None and (bulk.task.action, bulk.status) == (bk.CLEAR, bk.RUNNING)
        if bulk is None or bulk.status not in bk.UNFINISHED or is_clearing:
            # A clear takes its steps with the queue's own operation; the ticker sees to that.
            self._unfinished.pop((ns, bulk_id), None)
            self._notify(bulk_id)
            return 0
        if bulk.status == bk.COLLECTING:
            if bulk_id in self._filling:
                return 0
            return await self._collect(bulk)
        return await self._step(bulk)

    async def _collect(self, bulk: Bulk) -> int:
        """Write down the next page of what a filter matches."""
        if not bulk.filter:
            await self._give_up(bulk, _INTERRUPTED)
            return 1
        if bulk.total >= limits.BULK_TARGETS_MAX:
            await self._give_up(bulk, f"more than {limits.BULK_TARGETS_MAX} jobs match")
            return 1
        try:
            page = await self.find(bulk.ns, bulk.filter, bulk.cursor, FILL_TARGETS)
        except RequestError as error:
            await self._give_up(bulk, error.message)
            return 1
        except CorvoError:
            return 0  # nobody to ask at the moment; the next look tries again
        fill = FillBulk(
            bulk.ns, bulk.id, bulk.chunks, page.ids, page.states, not page.cursor, page.cursor
        )
        await self._engine.sweep([fill])
        self._notify(bulk.id)
        return 1

    async def _step(self, bulk: Bulk) -> int:
        key = bulk.ns, bulk.id
        limit = self._unfinished[key]
        (answer,) = await self._engine.sweep([StepBulk(*key, limit)])
        self.steps_total += 1
        if isinstance(answer, Rejected) and answer.code == outcome.INTERNAL_ERROR:
            await self._get_past(bulk, limit)
        else:
            self._unfinished[key] = min(limits.BULK_STEP_JOBS, limit * 2)
        if isinstance(answer, BulkChanged):
            self.jobs_total += max(0, answer.bulk.processed - bulk.processed)
        self._notify(bulk.id)
        return 1

    async def _get_past(self, bulk: Bulk, limit: int) -> None:
        """The machine failed over one of the jobs: find it alone, then leave it out."""
        key = bulk.ns, bulk.id
        if limit > 1:
            self._unfinished[key] = 1
            return
        (answer,) = await self._engine.sweep([StepBulk(*key, 1, is_skipping=True)])
        if isinstance(answer, Rejected):
            self._unfinished.pop(key, None)
            await self._give_up(bulk, answer.message)

    async def _give_up(self, bulk: Bulk, error: str) -> None:
        await self._engine.sweep([AbortBulk(bulk.ns, bulk.id, error)])
        self._notify(bulk.id)

    def _enter(self, ns: int, bulk_id: bytes) -> None:
        self._unfinished.setdefault((ns, bulk_id), limits.BULK_STEP_JOBS)
        self._notify(bulk_id)
        self._woken.set()

    def _notify(self, bulk_id: bytes) -> None:
        for moved in self._watchers.get(bulk_id, ()):
            moved.set()

    def statistics(self) -> dict[str, int]:
        return {
            "unfinished_count": len(self._unfinished),
            "watchers_count": self._watchers_count,
            "steps_total": self.steps_total,
            "jobs_total": self.jobs_total,
        }
