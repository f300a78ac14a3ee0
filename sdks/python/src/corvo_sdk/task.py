"""A task: a plain function, and the ways to have it run as a job.

    send = app.task(queue="emails")(function)
    send("a@example.com")                  # runs it here
    send.enqueue("a@example.com")          # a worker runs it
    send.in_("5m").with_options(priority="high").enqueue("a@example.com")

`P` are the parameters of an enqueue, which are those of the function without the context; `R` is
what the job results in, for a coroutine function what it gives when awaited. Nothing here imports
the worker: it runs `Task.function` with what `Task.decode` gives.
"""

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Generic, ParamSpec, TypeVar, Unpack, cast

import msgspec
from msgspec import Raw, Struct

from corvo_sdk import otel
from corvo_sdk.duration import Duration, milliseconds
from corvo_sdk.handle import ClientSource, JobHandle
from corvo_sdk.options import CallOptions, Options, check_options, instant, merge, wire_options
from corvo_sdk.payload import Arguments, PayloadCodec, TaskDefinitionError
from corvo_sdk.schema import JsonSchema
from corvo_sdk.types import EnqueueResult, NewJob

P = ParamSpec("P")
R = TypeVar("R")
C = ParamSpec("C")
O = TypeVar("O")  # noqa: E741 - what a direct call gives

# One call of the API; beyond that a list is sent in parts, each of which is all or nothing.
CHUNK_JOBS: Final = 1_000
CHUNK_BYTES: Final = 8 * 1024 * 1024


class TaskCall(Struct, Generic[R], frozen=True):
    """A task with its arguments: checked, encoded, not sent. Made by `Task.call`."""

    task: "Task[..., R]"
    queue: str
    payload: bytes
    options: dict[str, Any]  # in the names of the API

    def new_job(self) -> NewJob:
        """Give it as the client takes it."""
        return NewJob(self.queue, Raw(self.payload), **self.options)

    def body(self) -> bytes:
        """Give it as the JSON of an enqueue, to be sent by somebody else, later.

        A delay counts from now, so it becomes an instant by the clock of this machine.
        """
        members: dict[str, Any] = {
            "queue": self.queue,
            "payload": Raw(self.payload),
            **self.options,
        }
        delay = members.pop("delay", None)
        if delay is not None:
            later = datetime.now(UTC) + timedelta(milliseconds=milliseconds(delay, "delay"))
            members["scheduled_at"] = instant(later)
        return msgspec.json.encode(members)

    def enqueue(self) -> JobHandle[R]:
        """Have it run by a worker."""
        client = self.task.source.client
        return self.handle(client.enqueue(self.queue, Raw(self.payload), **self.options))

    async def aenqueue(self) -> JobHandle[R]:
        """Have it run by a worker."""
        client = self.task.source.aclient
        return self.handle(await client.enqueue(self.queue, Raw(self.payload), **self.options))

    def handle(self, answer: EnqueueResult) -> JobHandle[R]:
        """Make the handle of what the server answered."""
        return JobHandle(
            answer.job_id,
            answer.status,
            self.task.source,
            is_duplicate=answer.unique_existing,
            read_result=self.task.read_result,
        )


class Producer(Generic[P, R]):
    """Enqueues one task with some options; immutable, every change gives another one."""

    def __init__(self, task: "Task[P, R]", options: Mapping[str, Any]) -> None:
        self._task = task
        self._options = options

    def call(self, *args: P.args, **kwargs: P.kwargs) -> TaskCall[R]:
        """Check and encode the arguments; nothing is sent. PayloadError names the parameter."""
        task = self._task
        encoded = task.codec.encode(args, kwargs)
        options = wire_options(task.name, self._options, encoded)
        trace = otel.current_trace()
        if trace is not None:
            options.setdefault("trace", trace)
        queue = self._options.get("queue", task.queue)
        return TaskCall(cast("Task[..., R]", task), queue, encoded.payload, options)

    def enqueue(self, *args: P.args, **kwargs: P.kwargs) -> JobHandle[R]:
        """Have it run by a worker."""
        return self.call(*args, **kwargs).enqueue()

    async def aenqueue(self, *args: P.args, **kwargs: P.kwargs) -> JobHandle[R]:
        """Have it run by a worker."""
        return await self.call(*args, **kwargs).aenqueue()

    def enqueue_many(self, calls: Iterable[TaskCall[R]]) -> list[JobHandle[R]]:
        """Enqueue what `call` made; up to a thousand at a time all or nothing."""
        return enqueue_all(self._task.source, calls)

    async def aenqueue_many(self, calls: Iterable[TaskCall[R]]) -> list[JobHandle[R]]:
        """Enqueue what `call` made; up to a thousand at a time all or nothing."""
        return await aenqueue_all(self._task.source, calls)

    def at(self, instant: datetime) -> "Producer[P, R]":
        """Run not before an instant, which has a time zone."""
        return self.with_options(at=instant)

    def in_(self, delay: Duration) -> "Producer[P, R]":
        """Run not before a delay has passed."""
        return self.with_options(delay=delay)

    def with_options(self, **options: Unpack[CallOptions]) -> "Producer[P, R]":
        """Give the same task with other options; the arguments stay as typed as they were."""
        checked = check_options(cast("Mapping[str, Any]", options))
        return Producer(self._task, merge(self._options, checked))


class Task(Producer[P, R]):
    """A declared task."""

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        source: ClientSource,
        name: str,
        queue: str,
        options: Options,
        context_type: type,
    ) -> None:
        _refuse_strange(name, function)
        self.function = function
        self.source = source
        self.name = name
        self.queue = queue
        self.options = options
        self.is_async = inspect.iscoroutinefunction(function)
        self.codec = PayloadCodec(name, function, context_type)
        super().__init__(self, options.job)
        # What help(), documentation tools and a debugger look at.
        self.__doc__ = function.__doc__
        self.__name__ = getattr(function, "__name__", name)
        self.__module__ = function.__module__
        self.__wrapped__ = function

    def __repr__(self) -> str:
        return f"<Task {self.name!r} on {self.queue!r}>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the function here and now; no job is made."""
        return self.function(*args, **kwargs)

    @property
    def wants_context(self) -> bool:
        """Whether the function has a parameter for the context."""
        return self.codec.context_parameter is not None

    @property
    def context_parameter(self) -> str | None:
        """The name of the parameter that gets the context."""
        return self.codec.context_parameter

    @property
    def process(self) -> bool:
        """Whether it runs in a process of its own."""
        return self.options.process

    def encode(self, *args: P.args, **kwargs: P.kwargs) -> bytes:
        """Make the payload of these arguments; PayloadError names the parameter that is wrong."""
        return self.codec.encode(args, kwargs).payload

    def decode(self, payload: bytes, context: object = None) -> Arguments:
        """Make the arguments of a payload, with the context where the function wants it."""
        return self.codec.decode(payload, context)

    def encode_result(self, value: object) -> bytes:
        """Make the JSON of what the function gave."""
        return self.codec.encode_result(value)

    def read_result(self, value: Any) -> R:
        """Make what the function gave of its JSON."""
        return cast("R", self.codec.decode_result(msgspec.json.encode(value)))

    def json_schema(self) -> JsonSchema:
        """Describe the payload as JSON Schema."""
        return self.codec.json_schema()


class FunctionTask(Task[P, R], Generic[P, R, C, O]):
    """A task as its decorator gives it: `C` and `O` are what a direct call takes and gives."""

    def __call__(self, *args: C.args, **kwargs: C.kwargs) -> O:
        """Run the function here and now; no job is made."""
        return cast("O", self.function(*args, **kwargs))


def enqueue_all(source: ClientSource, calls: Iterable[TaskCall[R]]) -> list[JobHandle[R]]:
    """Enqueue calls of any tasks, in their order."""
    handles: list[JobHandle[R]] = []
    for part in _parts(calls):
        answer = source.client.enqueue_many([call.new_job() for call in part])
        handles += [call.handle(one) for call, one in zip(part, answer.results, strict=True)]
    return handles


async def aenqueue_all(source: ClientSource, calls: Iterable[TaskCall[R]]) -> list[JobHandle[R]]:
    """Enqueue calls of any tasks, in their order."""
    handles: list[JobHandle[R]] = []
    for part in _parts(calls):
        answer = await source.aclient.enqueue_many([call.new_job() for call in part])
        handles += [call.handle(one) for call, one in zip(part, answer.results, strict=True)]
    return handles


def _parts(calls: Iterable[TaskCall[R]]) -> Iterator[list[TaskCall[R]]]:
    part: list[TaskCall[R]] = []
    size = 0
    for call in calls:
        if part and (len(part) == CHUNK_JOBS or size + len(call.payload) > CHUNK_BYTES):
            yield part
            part, size = [], 0
        part.append(call)
        size += len(call.payload)
    if part:
        yield part


def _refuse_strange(name: str, function: Callable[..., Any]) -> None:
    # Safety: the annotation is a promise of typed callers only.
    given: object = function
    if not callable(given) or isinstance(given, type):
        raise TaskDefinitionError(f"{name}: a task is a function, and this is {given!r}")
    if inspect.isgeneratorfunction(given) or inspect.isasyncgenfunction(given):
        raise TaskDefinitionError(f"{name}: a task gives one result, and this is a generator")
