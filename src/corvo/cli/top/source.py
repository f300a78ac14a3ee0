"""Every call the screens make, in one place: what is asked, and the facts that come back."""

from collections.abc import AsyncIterator, Mapping
from typing import Any, TypeVar
from urllib.parse import quote

import msgspec

from corvo.cli.top.facts import (
    BulkResult,
    Event,
    Group,
    Groups,
    Info,
    JobsPage,
    Queue,
    Status,
    Throughput,
    Timeline,
    Why,
    Worker,
)
from corvo_sdk import AsyncClient
from corvo_sdk.errors import (
    ConnectionFailedError,
    ProtocolError,
    UnavailableError,
    ViewUnavailableError,
)
from corvo_sdk.errors import CorvoError as CallError

API = "/api/v1"
Fact = TypeVar("Fact")

TIMEOUT_S = 8.0
BULK_TIMEOUT_S = 40.0  # an operation answers within 25 s, with what it has done or a ticket
GROUPS_MAX = 200
METRICS_BYTES_MAX = 8 * 1024 * 1024
EVENTS_MAX = 500

STREAM_SILENCE_S = 40.0  # a quiet stream says something every fifteen seconds
STREAM_BYTES_MAX = 1024 * 1024  # of one event; the server's are far smaller


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
        self._written_index = 0

    async def close(self) -> None:
        await self._client.close()

    # --- reads of the core ----------------------------------------------------------------------

    async def status(self) -> Status:
        return await self._get("/cluster/status", Status)

    async def version(self) -> str:
        return (await self._get("/info", Info)).server_version

    async def queues(self) -> list[Queue]:
        return await self._get("/queues", list[Queue])

    async def workers(self) -> list[Worker]:
        return await self._get("/workers", list[Worker])

    async def throughput(self) -> Throughput:
        return await self._get("/metrics/throughput", Throughput)

    async def metrics(self) -> str:
        """The page of metrics as text; nothing when it is too large to be read now and then."""
        body = await self._body("GET", "/metrics")
        return body if isinstance(body, str) and len(body) <= METRICS_BYTES_MAX else ""

    async def job(self, job_id: str) -> dict[str, Any]:
        return await self._get(f"/jobs/{_segment(job_id)}", dict[str, Any])

    async def why(self, job_id: str) -> Why:
        return await self._get(f"/jobs/{_segment(job_id)}/why", Why)

    # --- reads of the search index ----------------------------------------------------------------

    async def search(self, body: Mapping[str, Any]) -> JobsPage:
        answer = await self._body("POST", "/jobs/search", body=dict(body), query=self._after())
        return _facts(answer, JobsPage)

    async def groups(self) -> list[Group]:
        query = {"limit": str(GROUPS_MAX)} | self._after()
        answer = await self._body("GET", "/dead/groups", query=query)
        return _facts(answer, Groups).groups

    async def timeline(self, job_id: str) -> Timeline:
        query = {"limit": str(EVENTS_MAX)}
        answer = await self._body("GET", f"/jobs/{_segment(job_id)}/events", query=query)
        return _facts(answer, Timeline)

    async def follow(self, job_id: str, after_seq: int | None) -> AsyncIterator[Event]:
        """Events of one job as they happen; ends or raises when the stream does."""
        query = {"job_id": job_id}
        if after_seq is not None:
            query["last_event_id"] = str(after_seq)
        opened = self._client.open("GET", f"{API}/events", query=query, timeout_s=STREAM_SILENCE_S)
        async with opened as stream:
            rest = b""
            async for chunk in stream.chunks:
                *whole, rest = (rest + chunk).split(b"\n")
                if len(rest) > STREAM_BYTES_MAX:
                    return
                for event in map(_event_of, whole):
                    if event is not None:
                        yield event

    # --- changes ----------------------------------------------------------------------------------

    async def pause(self, queue: str, *, is_paused: bool) -> None:
        verb = "pause" if is_paused else "resume"
        await self._change("POST", f"/queues/{_segment(queue)}/{verb}")

    async def bulk(self, body: Mapping[str, Any]) -> BulkResult:
        answer = await self._change("POST", "/jobs/bulk", body)
        return _facts(answer, BulkResult)

    async def operation(self, operation_id: str) -> BulkResult:
        return await self._get(f"/bulk/{_segment(operation_id)}", BulkResult)

    async def undo(self, operation_id: str) -> BulkResult:
        answer = await self._change("POST", f"/bulk/{_segment(operation_id)}/undo")
        return _facts(answer, BulkResult)

    # --- below ------------------------------------------------------------------------------------

    def _after(self) -> dict[str, str]:
        return {"after": str(self._written_index)} if self._written_index else {}

    async def _get(self, path: str, kind: type[Fact]) -> Fact:
        return _facts(await self._body("GET", path), kind)

    async def _change(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        sent = dict(body) if body is not None else {}
        answer = await self._client.request(method, API + path, body=sent, timeout_s=BULK_TIMEOUT_S)
        self._written_index = max(self._written_index, answer.index)
        return answer.body

    async def _body(
        self,
        method: str,
        path: str,
        *,
        body: Mapping[str, Any] | None = None,
        query: Mapping[str, str] | None = None,
    ) -> Any:
        answer = await self._client.request(
            method,
            API + path,
            body=body,
            query=dict(query) if query else None,
            timeout_s=TIMEOUT_S,
        )
        return answer.body


def connect(url: str, api_key: str | None) -> Source:
    """A source for one address of a server, or several with commas."""
    count = len(url.split(","))
    # The screens ask again by themselves and say that they do; a client that tried on silently
    # would only hide for how long nobody has answered. Only another address is tried at once.
    client = AsyncClient(
        url,
        api_key=api_key,
        timeout_s=TIMEOUT_S,
        deadline_s=2 * BULK_TIMEOUT_S,
        retries=count - 1,
    )
    return Source(client, ", ".join(client.urls))


def _facts(answer: Any, kind: type[Fact]) -> Fact:
    """Read an answer; whatever else listens at the address must not end the screens."""
    try:
        return msgspec.convert(answer, kind)
    except msgspec.ValidationError as error:
        raise ProtocolError(f"the answer is not what a Corvo server says: {error}") from error


def _event_of(line: bytes) -> Event | None:
    """The event in a line of the stream; None for comments and for news about the stream itself."""
    if not line.startswith(b"data:"):
        return None
    try:
        return msgspec.json.decode(line[5:], type=Event)
    except msgspec.MsgspecError:
        return None


def _segment(text: str) -> str:
    return quote(text, safe="")
