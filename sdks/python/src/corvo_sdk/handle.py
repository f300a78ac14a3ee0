"""What an enqueue gives back: the id of a job, and what can be asked about it."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from corvo_sdk.clock import Deadline
from corvo_sdk.duration import Duration

if TYPE_CHECKING:
    from corvo_sdk.aio import AsyncClient
    from corvo_sdk.client import Client
    from corvo_sdk.types import Job

R_co = TypeVar("R_co", covariant=True)


class ClientSource(Protocol):
    """Who has the clients; an app makes them when they are first needed."""

    @property
    def client(self) -> "Client": ...
    @property
    def aclient(self) -> "AsyncClient": ...


class JobNotCompletedError(Exception):
    """There is no result: the job ended dead or cancelled."""

    def __init__(self, job: "Job") -> None:
        super().__init__(job)
        self.job = job
        self.state = job.state

    def __str__(self) -> str:
        reasons = [error.error for error in self.job.errors[-1:]] or [self.job.dead_reason or ""]
        return f"{self.job.id} is {self.state}" + (f": {reasons[0]}" if reasons[0] else "")


class JobHandle(Generic[R_co]):
    """A job that was enqueued. Asking costs a call each time; nothing is watched behind it."""

    __slots__ = ("_read_result", "_source", "id", "is_duplicate", "status")

    def __init__(
        self,
        id: str,  # noqa: A002 - the word for it everywhere else
        status: str,
        source: ClientSource,
        *,
        is_duplicate: bool = False,
        read_result: Callable[[Any], R_co] | None = None,
    ) -> None:
        self.id = id
        self.status = status  # as the enqueue answered: pending, scheduled, held or duplicate
        self.is_duplicate = is_duplicate  # the unique key was taken: this is the job that has it
        self._source = source
        self._read_result = read_result

    def __repr__(self) -> str:
        return f"JobHandle({self.id!r}, {self.status!r})"

    def wait(self, timeout: Duration | None = None) -> "Job":
        """Wait until the job is settled and give it; TimeoutError when `timeout` passes first."""
        deadline = Deadline(timeout)
        while True:
            job = self._source.client.wait(self.id, timeout=deadline.wait_s())
            if job is not None:
                return job
            deadline.check(self.id)

    def result(self, timeout: Duration | None = None) -> R_co:
        """Wait for the result, as the task declares it; JobNotCompletedError when there is none."""
        return self._result_of(self.wait(timeout))

    def refresh(self) -> "Job":
        """Read the job as it is now."""
        return self._source.client.get_job(self.id)

    def cancel(self) -> None:
        """Cancel the job; a running one is asked to stop."""
        self._source.client.cancel(self.id)

    async def await_(self, timeout: Duration | None = None) -> "Job":
        """Wait until the job is settled, as `wait` does."""
        deadline = Deadline(timeout)
        while True:
            job = await self._source.aclient.wait(self.id, timeout=deadline.wait_s())
            if job is not None:
                return job
            deadline.check(self.id)

    async def aresult(self, timeout: Duration | None = None) -> R_co:
        """Wait for the result, as `result` does."""
        return self._result_of(await self.await_(timeout))

    async def arefresh(self) -> "Job":
        """Read the job as it is now."""
        return await self._source.aclient.get_job(self.id)

    async def acancel(self) -> None:
        """Cancel the job; a running one is asked to stop."""
        await self._source.aclient.cancel(self.id)

    def _result_of(self, job: "Job") -> R_co:
        if job.state != "completed":
            raise JobNotCompletedError(job)
        return job.result if self._read_result is None else self._read_result(job.result)
