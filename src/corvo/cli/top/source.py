"""Every call the screens make, in one place: the client of the SDK, and what it leaves to them."""

import math
from collections.abc import AsyncIterator, Sequence
from typing import Unpack

import msgspec
from msgspec import Struct

from corvo_sdk import AsyncClient
from corvo_sdk.errors import (
    ConnectionFailedError,
    ProtocolError,
    UnavailableError,
    ViewUnavailableError,
)
from corvo_sdk.errors import CorvoError as CallError
from corvo_sdk.types import (
    Bulk,
    BulkOptions,
    BulkResult,
    DeadGroup,
    Job,
    JobEvent,
    JobsPage,
    Queue,
    SearchFilter,
    Throughput,
    Timeline,
    Why,
    WorkerInfo,
)
from corvo_sdk.types.search import BulkAction, Order

TIMEOUT_S = 8.0  # beyond what the server takes for an operation or for its search index
GROUPS_MAX = 200
METRICS_LENGTH_MAX = 8 * 1024 * 1024
EVENTS_MAX = 500


class Timing(Struct, frozen=True):
    """A histogram of the server, in short."""

    count: int = 0
    p50_us: int = 0
    p99_us: int = 0


class View(Struct, frozen=True):
    """How far the search index has come."""

    state: str = "off"
    index: int = 0
    lag: int = 0


class Status(Struct, frozen=True):
    """Where the server stands: what is shown of an answer whose members differ by version."""

    mode: str = ""
    phase: str = ""
    index: int = 0
    fsync: str = ""
    workers_count: int = 0
    sync_time: Timing = Timing()
    apply_time: Timing = Timing()
    view: View = View()


class Search(Struct, frozen=True):
    """One page of a search, as it is asked for; two that are equal have the same answer."""

    conditions: SearchFilter = {}
    sort: str | None = None
    order: Order = "desc"
    limit: int | None = None
    cursor: str | None = None


def is_away(error: CallError) -> bool:
    """Tell whether the server can not be reached or takes no requests now."""
    if isinstance(error, ViewUnavailableError):
        return False
    return isinstance(error, ConnectionFailedError | UnavailableError)


class Source:
    """The server as the screens see it."""

    def __init__(self, client: AsyncClient, url: str) -> None:
        self.url = url
        self._client = client
        # Reads of the search index wait for our own last write, so that its effect is seen.
        self._written_index: int | None = None

    async def close(self) -> None:
        await self._client.close()

    # --- reads of the core ----------------------------------------------------------------------

    async def status(self) -> Status:
        members = await self._client.cluster_status()
        try:
            return msgspec.convert(members, Status)
        except msgspec.ValidationError as error:
            # Whatever else listens at the address must not end the screens.
            raise ProtocolError(f"the answer can not be read: {error}") from error

    async def version(self) -> str:
        return (await self._client.info()).server_version

    async def queues(self) -> list[Queue]:
        # Cost: 20 ms for ten thousand queues, settings included. A struct of only what is shown
        # would save 10 ms of a look every two seconds, and be a second truth about queues.
        return await self._client.queues()

    async def workers(self) -> list[WorkerInfo]:
        return await self._client.workers()

    async def throughput(self) -> Throughput:
        return await self._client.throughput()

    async def metrics(self) -> str:
        """The page of metrics as text; nothing when it is too large to be read now and then."""
        page = await self._client.metrics()
        return page if len(page) <= METRICS_LENGTH_MAX else ""

    async def job(self, job_id: str) -> Job:
        return await self._client.get_job(job_id)

    async def why(self, job_id: str) -> Why:
        return await self._client.why(job_id)

    # --- reads of the search index ----------------------------------------------------------------

    async def search(self, asked: Search) -> JobsPage:
        return await self._client.search_page(
            sort=asked.sort,
            order=asked.order,
            limit=asked.limit,
            cursor=asked.cursor,
            after=self._written_index,
            **asked.conditions,
        )

    async def groups(self) -> list[DeadGroup]:
        found = await self._client.dead_groups(limit=GROUPS_MAX, after=self._written_index)
        return found.groups

    async def timeline(self, job_id: str) -> Timeline:
        return await self._client.job_events(job_id, limit=EVENTS_MAX)

    async def follow(
        self, job_id: str, after_seq: int | None, *, is_patient: bool
    ) -> AsyncIterator[JobEvent]:
        """Events of one job as they happen; who is not patient gets an error when it breaks."""
        events = self._client.events(
            job_id=job_id,
            last_event_id=after_seq,
            patience_s=math.inf if is_patient else 0.0,
        )
        async for event in events:
            # A reset is about the stream: what is on the screen stays true without what is gone.
            if event.type != "reset":
                yield JobEvent(
                    seq=event.seq,
                    type=event.type,
                    at=event.at,
                    queue=event.queue,
                    data=event.data,
                )

    # --- changes ----------------------------------------------------------------------------------

    async def pause(self, queue: str, *, is_paused: bool) -> None:
        change = self._client.pause if is_paused else self._client.resume
        self._wrote((await change(queue)).index)

    async def bulk(
        self,
        action: BulkAction,
        *,
        job_ids: Sequence[str] | None = None,
        matching: SearchFilter | None = None,
        is_dry_run: bool = False,
        **options: Unpack[BulkOptions],
    ) -> BulkResult:
        result = await self._client.bulk(
            action, job_ids=job_ids, matching=matching, is_dry_run=is_dry_run, **options
        )
        self._wrote(result.index)
        return result

    async def operation(self, operation_id: str) -> Bulk:
        return await self._client.bulk_operation(operation_id)

    async def undo(self, operation_id: str) -> Bulk:
        undone = await self._client.undo_bulk(operation_id)
        self._wrote(undone.index)
        return undone

    def _wrote(self, index: int) -> None:
        self._written_index = max(self._written_index or 0, index) or None


def connect(url: str, api_key: str | None) -> Source:
    """A source for one address of a server, or several with commas."""
    count = len(url.split(","))
    # The screens ask again by themselves and say that they do; a client that tried on silently
    # would only hide for how long nobody has answered. Only another address is tried at once.
    client = AsyncClient(
        url,
        api_key=api_key,
        timeout_s=TIMEOUT_S,
        deadline_s=(count + 1) * TIMEOUT_S,
        retries=count - 1,
        user_agent="corvo-cli",
    )
    return Source(client, ", ".join(client.urls))
