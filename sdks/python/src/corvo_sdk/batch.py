"""Jobs that end together: a batch of calls with a callback."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypedDict, TypeVar

from msgspec import Raw, Struct

from corvo_sdk.handle import ClientSource, JobHandle
from corvo_sdk.task import Task, TaskCall
from corvo_sdk.types import EnqueuedMany, NewJob

if TYPE_CHECKING:
    from corvo_sdk.types import Batch

R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)

BATCH_JOBS_MAX: Final = 5_000  # what the server takes in one call


class Finder(Protocol):
    """Who knows which task runs a job."""

    def find(self, queue: str, tags: Mapping[str, str]) -> Task[..., Any] | None: ...


class BatchHandle(Generic[R_co]):
    """A batch that was enqueued, and the handles of its jobs in their order."""

    def __init__(self, id: str, jobs: list[JobHandle[R_co]], source: ClientSource) -> None:  # noqa: A002 - the word for it everywhere else
        self.id = id
        self.jobs = jobs
        self._source = source

    def __repr__(self) -> str:
        return f"BatchHandle({self.id!r}, {len(self.jobs)} jobs)"

    def refresh(self) -> "Batch":
        """Read how far the batch is."""
        return self._source.client.batch(self.id)

    async def arefresh(self) -> "Batch":
        """Read how far the batch is."""
        return await self._source.aclient.batch(self.id)


class BatchOptions(TypedDict, total=False):
    """What makes an enqueue of many jobs a batch."""

    is_batch: bool
    callback_queue: str
    callback_payload: Any


class PreparedBatch(Struct, Generic[R]):
    """A batch, checked and not sent."""

    calls: list[TaskCall[R]]
    options: BatchOptions

    def jobs(self) -> list[NewJob]:
        """Give the jobs as the client takes them."""
        return [call.new_job() for call in self.calls]

    def handle(self, source: ClientSource, answer: EnqueuedMany) -> BatchHandle[R]:
        """Make the handle of what the server answered."""
        pairs = zip(self.calls, answer.results, strict=True)
        handles = [call.handle(one) for call, one in pairs]
        return BatchHandle(answer.batch_id or "", handles, source)


def prepare_batch(
    finder: Finder, calls: Iterable[TaskCall[R]], callback: TaskCall[Any] | None
) -> PreparedBatch[R]:
    """Check what can be checked without the server."""
    members = list(calls)
    if not 1 <= len(members) <= BATCH_JOBS_MAX:
        raise ValueError(f"a batch has 1 to {BATCH_JOBS_MAX} calls, and these are {len(members)}")
    options: BatchOptions = {"is_batch": True}
    if callback is not None:
        # The server gives a callback no tags, so nothing but its queue says which task runs it.
        if finder.find(callback.queue, {}) is not callback.task:
            raise ValueError(
                f"the callback {callback.task.name} is not the only task of {callback.queue!r};"
                " give it a queue of its own"
            )
        options["callback_queue"] = callback.queue
        options["callback_payload"] = Raw(callback.payload)
    return PreparedBatch(members, options)
