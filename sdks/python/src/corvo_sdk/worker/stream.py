"""The link over the worker stream: one WebSocket, jobs pushed as slots are free.

The server is told how many places each set of queues has, in all; it pushes jobs as long as fewer
are in flight, and a report that was answered frees its place by itself. So at a steady rate nothing
is asked for: reports go out, jobs come in.

A connection that breaks is made again by whoever needs it next, with what the worker holds: leases
outlive connections. What was under way is `UNDELIVERED` then and is sent again with its token.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Sequence
from typing import Final

import aiohttp
import msgspec

from corvo_sdk.aio import AsyncClient
from corvo_sdk.errors import ConnectionFailedError, CorvoError, UnavailableError, error_of
from corvo_sdk.types import FetchedJob
from corvo_sdk.worker import frames
from corvo_sdk.worker.frames import Credit, HeldJob, Incoming, Outgoing, Resume
from corvo_sdk.worker.http import Identity
from corvo_sdk.worker.links import Delivery, Report, ReportResult, Signals

CONNECT_S: Final = 10.0
ANSWER_S: Final = 30.0
IN_FLIGHT_MAX: Final = 4_096  # places a server gives one stream, unless told otherwise
MESSAGE_BYTES_MAX: Final = 64 * 1024 * 1024  # a push of many large payloads

_log = logging.getLogger("corvo.worker")


class _Set:
    """Queues that share slots, and the jobs of them that have come."""

    def __init__(self, queues: Sequence[str], lease_ms: int | None) -> None:
        self.queues = list(queues)
        self.lease_ms = lease_ms
        self.granted = 0
        self.inbox: deque[FetchedJob] = deque()
        self.held: dict[str, int] = {}  # id and token of what is in flight
        self.arrived = asyncio.Event()

    def credit(self) -> Credit:
        lease = None if self.lease_ms is None else f"{self.lease_ms}ms"
        return Credit(queues=self.queues, slots=self.granted, lease_duration=lease)


class _Line:
    """One connection: what waits for an answer, and the task that reads."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self.socket = socket
        self.waiting: dict[int, asyncio.Future[Incoming]] = {}
        self.reading: asyncio.Task[None] | None = None
        self.is_broken = False

    def fail(self, error: CorvoError) -> None:
        self.is_broken = True
        for answer in self.waiting.values():
            if not answer.done():
                answer.set_exception(error)
        self.waiting.clear()


class StreamLink:
    """Talks to the server over the worker stream."""

    def __init__(self, client: AsyncClient, identity: Identity) -> None:
        self._client = client
        self._identity = identity
        self._sets: dict[tuple[str, ...], _Set] = {}
        self._set_of: dict[str, _Set] = {}  # by queue
        self._line: _Line | None = None
        self._connecting = asyncio.Lock()
        self._web: aiohttp.ClientSession | None = None
        self._signals: Signals | None = None
        self._stream_id = ""
        self._received = 0
        self._number = 0
        self._is_draining = False

    # --- the port ---------------------------------------------------------------------------------

    async def open(self, signals: Signals) -> None:
        """Connect once, so that a server without streams is known at the start."""
        self._signals = signals
        await self._connected()

    def ready(self, queues: Sequence[str]) -> int:
        """Jobs that have come and wait to be fetched."""
        known = self._sets.get(tuple(queues))
        return 0 if known is None else len(known.inbox)

    async def fetch(
        self, queues: Sequence[str], count: int, wait_s: float, *, lease_ms: int | None = None
    ) -> list[FetchedJob]:
        """Give what has come, or grant `count` more places and wait."""
        places = self._place(queues, lease_ms)
        line = await self._connected()
        if not places.inbox and not self._is_draining:
            # Before the grant: what comes while it is under way must be seen.
            places.arrived.clear()
            await self._grant(line, places, len(places.held) + count)
            try:
                async with asyncio.timeout(wait_s):
                    await places.arrived.wait()
            except TimeoutError:
                pass
            if line.is_broken and not places.inbox:
                raise ConnectionFailedError("the stream broke", was_sent=False)
        jobs = list(places.inbox)
        places.inbox.clear()
        return jobs

    async def report(self, reports: Sequence[Report]) -> list[ReportResult]:
        """Send reports in one frame, or in several when they are large."""
        results: list[ReportResult] = []
        start = 0
        while start < len(reports):
            until, size = start, 0
            while until < len(reports) and until - start < frames.ITEMS_MAX:
                size += frames.size_of(reports[until])
                if size > frames.BYTES_MAX and until > start:
                    break
                until += 1
            results += await self._send_reports(reports[start:until])
            start = until
        return results

    async def drain(self) -> list[FetchedJob]:
        """Have nothing pushed any more; gives what has come meanwhile."""
        self._is_draining = True
        if self._line is not None and not self._line.is_broken:
            try:
                await self._ask(self._line, Outgoing(request_id=0, draining=True))
            except CorvoError as error:
                _log.info("the stream could not be drained: %s", error)
        jobs = [job for places in self._sets.values() for job in places.inbox]
        for places in self._sets.values():
            places.inbox.clear()
            places.arrived.set()
        return jobs

    async def close(self) -> None:
        """Close the connection; what is still in flight keeps its lease."""
        line, self._line = self._line, None
        if line is not None:
            line.is_broken = True
            await line.socket.close()
            if line.reading is not None:
                await asyncio.gather(line.reading, return_exceptions=True)
        if self._web is not None:
            await self._web.close()

    # --- frames out -------------------------------------------------------------------------------

    def _place(self, queues: Sequence[str], lease_ms: int | None) -> _Set:
        key = tuple(queues)
        places = self._sets.get(key)
        if places is None:
            places = self._sets[key] = _Set(queues, lease_ms)
            self._set_of.update((name, places) for name in queues)
        return places

    async def _grant(self, line: _Line, places: _Set, wanted: int) -> None:
        others = sum(other.granted for other in self._sets.values() if other is not places)
        wanted = max(1, min(wanted, IN_FLIGHT_MAX - others))
        # Small changes are not worth a frame: places become free by themselves.
        if places.granted // 2 <= wanted <= places.granted and places.granted:
            return
        before, places.granted = places.granted, wanted
        try:
            answer = await self._ask(line, Outgoing(request_id=0, credits=[places.credit()]))
        except CorvoError:
            places.granted = before
            raise
        for item in answer.credits:
            if item.status == "rejected":
                places.granted = before
                raise UnavailableError(
                    item.error or "the places were refused",
                    code=item.code,
                    status=503,
                    retry_after_ms=item.retry_after_ms or 1_000,
                )

    async def _send_reports(self, reports: Sequence[Report]) -> list[ReportResult]:
        frame = Outgoing(request_id=0)
        names = [frames.put(frame, report) for report in reports]
        try:
            answer = await self._ask(await self._connected(), frame)
        except CorvoError as error:
            lost = ReportResult(Delivery.UNDELIVERED, "", str(error), error.retry_after_ms)
            return [lost] * len(reports)
        lists = {name: iter(getattr(answer, name)) for name in set(names)}
        results: list[ReportResult] = []
        for name, report in zip(names, reports, strict=True):
            result = frames.result_of(next(lists[name], frames.ItemResult(status="rejected")))
            results.append(result)
            if result.delivery in {Delivery.DONE, Delivery.LOST}:
                self._forget(report.job_id)
        return results

    def _forget(self, job_id: str) -> None:
        for places in self._sets.values():
            places.held.pop(job_id, None)

    async def _ask(self, line: _Line, frame: Outgoing) -> Incoming:
        self._number += 1
        frame.request_id = number = self._number
        answer: asyncio.Future[Incoming] = asyncio.get_running_loop().create_future()
        line.waiting[number] = answer
        try:
            await line.socket.send_str(frames.encode(frame).decode())
            async with asyncio.timeout(ANSWER_S):
                found = await answer
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            line.fail(ConnectionFailedError(f"the stream broke: {error}", was_sent=True))
            await line.socket.close()
            raise ConnectionFailedError(f"the stream broke: {error}", was_sent=True) from error
        finally:
            line.waiting.pop(number, None)
        if found.error is not None:
            raise CorvoError(found.error.error, code=found.error.code, hint=found.error.hint)
        return found

    # --- the connection ---------------------------------------------------------------------------

    async def _connected(self) -> _Line:
        line = self._line
        if line is not None and not line.is_broken:
            return line
        async with self._connecting:
            if self._line is None or self._line.is_broken:
                self._line = await self._connect()
            return self._line

    async def _connect(self) -> _Line:
        if self._web is None:
            self._web = aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar())
        headers = await self._client.headers()
        failure: CorvoError = ConnectionFailedError("there is no address", was_sent=False)
        for url in self._client.urls:
            try:
                async with asyncio.timeout(CONNECT_S):
                    socket = await self._web.ws_connect(
                        f"{url}/api/v1/stream",
                        protocols=(frames.PROTOCOL,),
                        headers=headers,
                        max_msg_size=MESSAGE_BYTES_MAX,
                        autoclose=True,
                    )
            except aiohttp.WSServerHandshakeError as error:
                failure = error_of(error.status, {}, b"")
            except (aiohttp.ClientError, OSError, TimeoutError) as error:
                failure = ConnectionFailedError(f"can not reach {url}: {error}", was_sent=False)
            else:
                return await self._begin(_Line(socket))
        raise failure

    async def _begin(self, line: _Line) -> _Line:
        line.reading = asyncio.get_running_loop().create_task(self._read(line))
        identity = self._identity
        held = {job: token for places in self._sets.values() for job, token in places.held.items()}
        frame = Outgoing(
            request_id=0,
            worker_id=identity.worker_id,
            hostname=identity.hostname,
            version=identity.version or None,
            draining=True if self._is_draining else None,
            credits=[places.credit() for places in self._sets.values() if places.granted],
        )
        if self._stream_id:
            jobs = [HeldJob(job_id=job, lease_token=token) for job, token in held.items()]
            frame.resume = Resume(stream_id=self._stream_id, received=self._received, jobs=jobs)
        answer = await self._ask(line, frame)
        facts = answer.stream
        if facts is None:
            raise ConnectionFailedError("the server did not open the stream", was_sent=True)
        if not facts.resumed:
            self._received = 0
        self._stream_id = facts.stream_id
        for job in facts.lost:
            self._lose(job)
        return line

    async def _read(self, line: _Line) -> None:
        try:
            async for message in line.socket:
                if message.type is not aiohttp.WSMsgType.TEXT:
                    continue
                self._take(line, frames.decode(message.data))
        except (aiohttp.ClientError, OSError, msgspec.MsgspecError) as error:
            _log.warning("the stream broke: %s", error)
        finally:
            line.fail(ConnectionFailedError("the stream was closed", was_sent=True))
            for places in self._sets.values():
                places.arrived.set()

    # --- frames in --------------------------------------------------------------------------------

    def _take(self, line: _Line, frame: Incoming) -> None:
        if frame.push:
            self._received = frame.push
            self._pushed(frame)
            return
        answer = line.waiting.get(frame.request_id)
        if answer is not None and not answer.done():
            answer.set_result(frame)

    def _pushed(self, frame: Incoming) -> None:
        signals = self._signals
        assert signals is not None
        for job in frame.jobs:
            places = self._set_of.get(job.queue)
            # A job of a set we never granted can not come; were it to, its lease would end.
            if places is not None and places.held.get(job.job_id) != job.lease_token:
                places.held[job.job_id] = job.lease_token
                places.inbox.append(job)
                places.arrived.set()
        if frame.jobs:
            signals.arrived()
        for held in frame.cancels:
            signals.cancel(held.job_id, held.lease_token)
        for held in frame.lost:
            self._lose(held)
        for word, refusal in (("drains", frame.drain), ("closes the stream", frame.closing)):
            if refusal is not None:
                _log.info("the server %s: %s", word, refusal.error)

    def _lose(self, job: HeldJob) -> None:
        assert self._signals is not None
        for places in self._sets.values():
            if places.held.get(job.job_id) != job.lease_token:
                continue
            del places.held[job.job_id]
            # Nobody may begin what is not ours any more.
            kept = [one for one in places.inbox if one.job_id != job.job_id]
            places.inbox = deque(kept)
        self._signals.lost(job.job_id, job.lease_token)
