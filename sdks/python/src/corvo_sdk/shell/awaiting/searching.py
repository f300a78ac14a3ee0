# Made from shell/blocking/searching.py by `make sdk`; change that one.
"""Search, and operations on many jobs."""

from collections.abc import AsyncIterator, Sequence
from typing import Literal, Unpack

from corvo_sdk.protocol.endpoints import searching
from corvo_sdk.shell.awaiting.running import Runner
from corvo_sdk.types.jobs import Batch
from corvo_sdk.types.search import (
    BatchesPage,
    Bulk,
    BulkAction,
    BulkOptions,
    BulkPage,
    BulkResult,
    DeadGroups,
    Fulltext,
    Graph,
    JobsPage,
    JobSummary,
    Order,
    SearchFilter,
    Storage,
)


class Searching(Runner):
    """Calls about many jobs. `after` is the index of a write that the answer must reflect."""

    async def search_page(
        self,
        *,
        sort: str | None = None,
        order: Order | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        after: int | None = None,
        **conditions: Unpack[SearchFilter],
    ) -> JobsPage:
        """Find jobs: one page."""
        call = searching.search(
            conditions, sort=sort, order=order, limit=limit, cursor=cursor, after=after
        )
        return await self._run(call)

    async def search(
        self,
        *,
        sort: str | None = None,
        order: Order | None = None,
        page_size: int = 200,
        after: int | None = None,
        **conditions: Unpack[SearchFilter],
    ) -> AsyncIterator[JobSummary]:
        """Find jobs: all of them, page after page."""
        cursor: str | None = None
        while True:
            call = searching.search(
                conditions, sort=sort, order=order, limit=page_size, cursor=cursor, after=after
            )
            page = await self._run(call)
            for job in page.jobs:
                yield job
            cursor = searching.cursor_after(page)
            if cursor is None:
                return

    async def dead_page(
        self,
        *,
        queue: str | None = None,
        sort: str | None = None,
        order: Order | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        after: int | None = None,
    ) -> JobsPage:
        """Dead jobs, the last one first: one page."""
        call = searching.dead(
            queue=queue, sort=sort, order=order, limit=limit, cursor=cursor, after=after
        )
        return await self._run(call)

    async def dead(
        self,
        *,
        queue: str | None = None,
        sort: str | None = None,
        order: Order | None = None,
        page_size: int = 200,
        after: int | None = None,
    ) -> AsyncIterator[JobSummary]:
        """Dead jobs, the last one first: all of them, page after page."""
        cursor: str | None = None
        while True:
            call = searching.dead(
                queue=queue, sort=sort, order=order, limit=page_size, cursor=cursor, after=after
            )
            page = await self._run(call)
            for job in page.jobs:
                yield job
            cursor = searching.cursor_after(page)
            if cursor is None:
                return

    async def dead_groups(
        self, *, queue: str | None = None, limit: int | None = None, after: int | None = None
    ) -> DeadGroups:
        """Dead jobs by kind of error, the largest group first."""
        return await self._run(searching.dead_groups(queue=queue, limit=limit, after=after))

    async def fulltext(
        self,
        words: str,
        *,
        queue: str | None = None,
        state: str | None = None,
        limit: int | None = None,
        after: int | None = None,
    ) -> Fulltext:
        """Find jobs by words, the best first."""
        call = searching.fulltext(words, queue=queue, state=state, limit=limit, after=after)
        return await self._run(call)

    async def graph(self, job_id: str, *, after: int | None = None) -> Graph:
        """Show the chain, batch and dependencies a job is tied to."""
        return await self._run(searching.graph(job_id, after=after))

    async def batches_page(
        self,
        *,
        state: Literal["open", "finished"] | None = None,
        order: Order | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        after: int | None = None,
    ) -> BatchesPage:
        """Batches, the newest first: one page."""
        call = searching.batches(state=state, order=order, limit=limit, cursor=cursor, after=after)
        return await self._run(call)

    async def batches(
        self,
        *,
        state: Literal["open", "finished"] | None = None,
        order: Order | None = None,
        page_size: int = 200,
        after: int | None = None,
    ) -> AsyncIterator[Batch]:
        """Batches, the newest first: all of them, page after page."""
        cursor: str | None = None
        while True:
            call = searching.batches(
                state=state, order=order, limit=page_size, cursor=cursor, after=after
            )
            page = await self._run(call)
            for batch in page.batches:
                yield batch
            cursor = page.cursor
            if not page.has_more or cursor is None:
                return

    async def storage(self, *, after: int | None = None) -> Storage:
        """Say what takes how much space."""
        return await self._run(searching.storage(after=after))

    async def bulk(
        self,
        action: BulkAction,
        *,
        job_ids: Sequence[str] | None = None,
        matching: SearchFilter | None = None,
        is_dry_run: bool = False,
        is_async: bool = False,
        **options: Unpack[BulkOptions],
    ) -> BulkResult:
        """Do something to many jobs: those named, or all that match a filter.

        Beyond 10,000 jobs it goes on by itself (`is_accepted`), and `bulk_progress` follows it.
        """
        call = searching.bulk(
            action,
            job_ids=job_ids,
            matching=matching,
            is_dry_run=is_dry_run,
            is_async=is_async,
            options=options,
        )
        return await self._run(call)

    async def bulk_operations_page(
        self, *, limit: int | None = None, cursor: str | None = None
    ) -> BulkPage:
        """Bulk operations, the newest first: one page."""
        return await self._run(searching.bulk_operations(limit=limit, cursor=cursor))

    async def bulk_operations(self, *, page_size: int = 100) -> AsyncIterator[Bulk]:
        """Bulk operations, the newest first: all that are kept, page after page."""
        cursor: str | None = None
        while True:
            page = await self._run(searching.bulk_operations(limit=page_size, cursor=cursor))
            for operation in page.operations:
                yield operation
            cursor = page.cursor
            if not page.has_more or cursor is None:
                return

    async def bulk_operation(self, bulk_id: str) -> Bulk:
        """Read a bulk operation."""
        return await self._run(searching.bulk_operation(bulk_id))

    async def abort_bulk(self, bulk_id: str) -> Bulk:
        """Stop a bulk operation where it stands."""
        return await self._run(searching.abort_bulk(bulk_id))

    async def undo_bulk(self, bulk_id: str) -> Bulk:
        """Bring back what a bulk operation changed and nobody has touched since."""
        return await self._run(searching.undo_bulk(bulk_id))
