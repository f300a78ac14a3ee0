"""The application: tasks by name, what surrounds them, and the clients they are enqueued with.

    app = Corvo("shop")

    @app.task(queue="emails", retries=5)
    def send_email(to: str, subject: str = "hello") -> None: ...

An app is made once, at import; workers and producers import it. It opens no connection before the
first enqueue, and none in a process that only imports it.
"""

import asyncio
import inspect
import os
import threading
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Iterable,
    Mapping,
    Sequence,
)
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from types import MappingProxyType
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    Final,
    ParamSpec,
    Protocol,
    TypeAlias,
    TypedDict,
    TypeVar,
    Unpack,
    cast,
    final,
    overload,
)
from weakref import WeakKeyDictionary

from corvo_sdk import schedules
from corvo_sdk.context import Context
from corvo_sdk.handle import JobHandle
from corvo_sdk.options import TASK_TAG, TaskOptions, task_options
from corvo_sdk.payload import TaskDefinitionError
from corvo_sdk.schedules import Schedule, ScheduleChange, ScheduleOptions
from corvo_sdk.schema import JsonSchema
from corvo_sdk.task import FunctionTask, Task, TaskCall, aenqueue_all, enqueue_all

if TYPE_CHECKING:
    from corvo_sdk.aio import AsyncClient
    from corvo_sdk.client import Client

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")

CallNext: TypeAlias = Callable[[Context], Awaitable[Any]]
Middleware: TypeAlias = Callable[[Context, CallNext], Awaitable[Any]]
Lifespan: TypeAlias = (
    Callable[[], AsyncIterator[Any]] | Callable[[], AbstractAsyncContextManager[Any]]
)
MiddlewareT = TypeVar("MiddlewareT", bound=Middleware)
LifespanT = TypeVar("LifespanT", bound=Lifespan)

QUEUE_DEFAULT: Final = "default"


class ClientOptions(TypedDict, total=False):
    """What the clients of an app are made with; see `Client`."""

    api_key: str | None
    bearer_token: str | None
    token_provider: Any
    headers: Mapping[str, str] | None
    timeout_s: float
    retries: int
    user_agent: str | None


@final
class _Anything:
    """Never made: only a first parameter without a type, or of type Any or object, accepts it."""


class TaskDecorator(Protocol):
    """Makes a task of a function, and keeps what type checkers know about it.

    A first parameter of type `Context` is filled in by the worker: a direct call has to give it,
    and an enqueue can not. Where the first parameter may be anything, it may be the context, too:
    then the arguments are left unchecked until the enqueue.
    """

    @overload
    def __call__(
        self, function: Callable[Concatenate[_Anything, ...], Coroutine[Any, Any, R]], /
    ) -> FunctionTask[..., R, ..., Coroutine[Any, Any, R]]: ...
    @overload
    def __call__(
        self, function: Callable[Concatenate[_Anything, ...], R], /
    ) -> FunctionTask[..., R, ..., R]: ...
    @overload
    def __call__(
        self, function: Callable[Concatenate[Context, P], Coroutine[Any, Any, R]], /
    ) -> FunctionTask[P, R, Concatenate[Context, P], Coroutine[Any, Any, R]]: ...
    @overload
    def __call__(
        self, function: Callable[Concatenate[Context, P], R], /
    ) -> FunctionTask[P, R, Concatenate[Context, P], R]: ...
    @overload
    def __call__(
        self, function: Callable[P, Coroutine[Any, Any, R]], /
    ) -> FunctionTask[P, R, P, Coroutine[Any, Any, R]]: ...
    @overload
    def __call__(self, function: Callable[P, R], /) -> FunctionTask[P, R, P, R]: ...


class Corvo:
    """Tasks, schedules, middleware and the lifespan of one application."""

    def __init__(
        self,
        name: str = "app",
        *,
        url: str | Sequence[str] | None = None,
        **client_options: Unpack[ClientOptions],
    ) -> None:
        self.name = name
        self._url = url
        self._client_options = client_options
        self._tasks: dict[str, Task[..., Any]] = {}
        self._middleware: list[Middleware] = []
        self._lifespan: Callable[[], AbstractAsyncContextManager[Any]] | None = None
        self._schedules: dict[str, Schedule] = {}
        self._lock = threading.Lock()
        self._client: Client | None = None
        self._client_process_id = 0
        self._aclient: AsyncClient | None = None
        self._aclients: WeakKeyDictionary[asyncio.AbstractEventLoop, AsyncClient] = (
            WeakKeyDictionary()
        )

    def __repr__(self) -> str:
        return f"<Corvo {self.name!r}, {len(self._tasks)} tasks>"

    # --- tasks ----------------------------------------------------------------------------------

    def task(
        self, queue: str = QUEUE_DEFAULT, *, name: str | None = None, **options: Unpack[TaskOptions]
    ) -> TaskDecorator:
        """Make a task of the function below.

        The name is that of the function; it is kept with every job, so renaming the function of
        jobs that wait needs `name=` with the old one.
        """
        if not isinstance(cast("object", queue), str):
            raise TaskDefinitionError("write @app.task() with parentheses: it takes options")
        checked = task_options(**options)

        def decorate(function: Callable[..., Any], /) -> FunctionTask[..., Any, ..., Any]:
            chosen = name or getattr(function, "__name__", "")
            if not chosen or chosen == "<lambda>":
                raise TaskDefinitionError(f"{function!r} has no name of its own; give name=")
            task = FunctionTask[..., Any, ..., Any](
                function,
                source=self,
                name=chosen,
                queue=queue,
                options=checked,
                context_type=Context,
            )
            self._add(task)
            return task

        return cast("TaskDecorator", decorate)

    @property
    def tasks(self) -> Mapping[str, Task[..., Any]]:
        """All tasks by name."""
        return MappingProxyType(self._tasks)

    def queues(self) -> list[str]:
        """The queues that tasks are declared on, in order."""
        return sorted({task.queue for task in self._tasks.values()})

    def find(self, queue: str, tags: Mapping[str, str]) -> Task[..., Any] | None:
        """Find who runs a job: the task its tag names, else the only task of its queue."""
        name = tags.get(TASK_TAG)
        if name is not None:
            return self._tasks.get(name)
        found = [task for task in self._tasks.values() if task.queue == queue]
        return found[0] if len(found) == 1 else None

    def schemas(self) -> dict[str, JsonSchema]:
        """Describe the payload of every task as JSON Schema."""
        return {name: task.json_schema() for name, task in sorted(self._tasks.items())}

    def enqueue_many(self, calls: Iterable[TaskCall[R]]) -> list[JobHandle[R]]:
        """Enqueue calls of any tasks of the app; up to a thousand at a time all or nothing."""
        return enqueue_all(self, calls)

    async def aenqueue_many(self, calls: Iterable[TaskCall[R]]) -> list[JobHandle[R]]:
        """Enqueue calls of any tasks of the app; up to a thousand at a time all or nothing."""
        return await aenqueue_all(self, calls)

    def _add(self, task: Task[..., Any]) -> None:
        known = self._tasks.get(task.name)
        # The same function again is a module that was loaded again.
        if known is not None and _place(known) != _place(task):
            hint = "names tell jobs apart; give one of them name="
            raise TaskDefinitionError(
                f"{_place(task)} and {_place(known)} are both named {task.name}: {hint}"
            )
        self._tasks[task.name] = task

    # --- what surrounds a handler ---------------------------------------------------------------

    def middleware(self, function: MiddlewareT) -> MiddlewareT:
        """Wrap every handler: `async def log(context, call_next)`, awaiting `call_next(context)`.

        The first one declared is the outermost. What it returns is the result of the job.
        """
        if not callable(function):
            raise TypeError(f"middleware is an async function, and this is {function!r}")
        self._middleware.append(function)
        return function

    def has_middleware(self) -> bool:
        """Say whether `surround` does anything."""
        return bool(self._middleware)

    async def surround(self, context: Context, innermost: CallNext) -> Any:
        """Run a handler inside all middleware; for those who run handlers."""
        chain = innermost
        for middleware in reversed(self._middleware):
            chain = _link(middleware, chain)
        return await chain(context)

    def lifespan(self, function: LifespanT) -> LifespanT:
        """Declare what a worker opens before its first job and closes after its last.

        An async generator function or one that gives an async context manager; what it yields is
        `context.state` in every handler.
        """
        if self._lifespan is not None:
            raise TypeError("an app has one lifespan; open several things inside of it")
        if inspect.isasyncgenfunction(function):
            self._lifespan = asynccontextmanager(
                cast("Callable[[], AsyncGenerator[Any, None]]", function)
            )
        else:
            self._lifespan = cast("Callable[[], AbstractAsyncContextManager[Any]]", function)
        return function

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[Any, None]:
        """Enter the lifespan and give its state; for workers."""
        if self._lifespan is None:
            yield None
        else:
            async with self._lifespan() as state:
                yield state

    # --- schedules ------------------------------------------------------------------------------

    def schedule(
        self,
        cron: str,
        task: Task[[], Any] | TaskCall[Any],
        *,
        name: str | None = None,
        **options: Unpack[ScheduleOptions],
    ) -> Schedule:
        """Have a task run by the calendar: with `task.call(...)` where it takes arguments.

        Declares it only; `sync_schedules`, or a worker at its start, tells the server. The name,
        which is that of the task unless given, is what a later sync finds it by.
        """
        call = task.call() if isinstance(task, Task) else task
        declared = schedules.declare(cron, call, name or call.task.name, options)
        if self._schedules.get(declared.name, declared) != declared:
            raise ValueError(f"there is a schedule {declared.name!r} already; give name=")
        self._schedules[declared.name] = declared
        return declared

    @property
    def schedules(self) -> Mapping[str, Schedule]:
        """All schedules by name."""
        return MappingProxyType(self._schedules)

    def sync_schedules(self) -> dict[str, ScheduleChange]:
        """Create or update the declared schedules; what is as declared is left alone."""
        return schedules.reconcile(self.client, self._schedules.values())

    async def async_schedules(self) -> dict[str, ScheduleChange]:
        """Create or update the declared schedules; what is as declared is left alone."""
        return await schedules.areconcile(self.aclient, self._schedules.values())

    # --- clients --------------------------------------------------------------------------------

    @property
    def client(self) -> "Client":
        """The client that `enqueue` uses, made when first needed."""
        with self._lock:
            # Safety: connections must not be shared with a process that was forked off.
            if self._client is None or self._client_process_id not in {0, os.getpid()}:
                from corvo_sdk.client import Client  # noqa: PLC0415 - only who enqueues pays

                self._client = Client(self._url, **self._client_options)
                self._client_process_id = os.getpid()
            return self._client

    @property
    def aclient(self) -> "AsyncClient":
        """The client that `aenqueue` uses, one for each event loop, made when first needed."""
        if self._aclient is not None:
            return self._aclient
        loop = asyncio.get_running_loop()
        with self._lock:
            client = self._aclients.get(loop)
            if client is None:
                from corvo_sdk.aio import AsyncClient  # noqa: PLC0415 - only who enqueues pays

                client = self._aclients[loop] = AsyncClient(self._url, **self._client_options)
            return client

    def bind(self, *, client: "Client | None" = None, aclient: "AsyncClient | None" = None) -> None:
        """Use these clients from now on; who made them closes them. None makes own ones again."""
        with self._lock:
            self._client, self._client_process_id = client, 0
            self._aclient = aclient

    def close(self) -> None:
        """Close the client that was made here; a later enqueue makes another one."""
        with self._lock:
            client, self._client = self._client, None
            is_own = self._client_process_id == os.getpid()
        if client is not None and is_own:
            client.close()

    async def aclose(self) -> None:
        """Close the async client of this event loop."""
        client = self._aclients.pop(asyncio.get_running_loop(), None)
        if client is not None:
            await client.close()


def _place(task: Task[..., Any]) -> str:
    function = task.function
    return f"{function.__module__}.{getattr(function, '__qualname__', task.name)}"


def _link(middleware: Middleware, following: CallNext) -> CallNext:
    def call(context: Context) -> Awaitable[Any]:
        return middleware(context, following)

    return call
