"""The application: tasks by name, what surrounds them, and the clients they are enqueued with.

    app = Corvo("shop")

    @app.task(queue="emails", retries=5)
    def send_email(to: str, subject: str = "hello") -> None: ...

An app is made once, at import; workers and producers import it. It opens no connection before the
first enqueue, and none in a process that only imports it.
"""

import inspect
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Mapping,
    Sequence,
)
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeAlias, TypeVar, Unpack, cast

from corvo_sdk import schedules
from corvo_sdk.batch import BatchHandle, prepare_batch
from corvo_sdk.clients import ClientOptions, Clients
from corvo_sdk.context import Context
from corvo_sdk.decorator import TaskDecorator
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
        self._tasks: dict[str, Task[..., Any]] = {}
        self._middleware: list[Middleware] = []
        self._lifespan: Callable[[], AbstractAsyncContextManager[Any]] | None = None
        self._schedules: dict[str, Schedule] = {}
        self._clients = Clients(url, client_options)

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

    def enqueue_batch(
        self, calls: Iterable[TaskCall[R]], *, callback: TaskCall[Any] | None = None
    ) -> BatchHandle[R]:
        """Enqueue calls as one batch, all or nothing, at most 5,000.

        The callback is enqueued once the last of them has ended, however each ended. It runs on the
        only task of its queue, which gets the counts as a parameter `batch`.
        """
        prepared = prepare_batch(self, calls, callback)
        return prepared.handle(self, self.client.enqueue_many(prepared.jobs(), **prepared.options))

    async def aenqueue_batch(
        self, calls: Iterable[TaskCall[R]], *, callback: TaskCall[Any] | None = None
    ) -> BatchHandle[R]:
        """Enqueue calls as one batch, as `enqueue_batch` does."""
        prepared = prepare_batch(self, calls, callback)
        answer = await self.aclient.enqueue_many(prepared.jobs(), **prepared.options)
        return prepared.handle(self, answer)

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
        return self._clients.client

    @property
    def aclient(self) -> "AsyncClient":
        """The client that `aenqueue` uses, one for each event loop, made when first needed."""
        return self._clients.aclient

    def configure(
        self, url: str | Sequence[str] | None = None, **client_options: Unpack[ClientOptions]
    ) -> None:
        """Use another server from now on, where settings are known later than tasks.

        Close the app first if it was in use: clients that were made are forgotten, not closed.
        """
        self._clients.configure(url, client_options)

    def bind(self, *, client: "Client | None" = None, aclient: "AsyncClient | None" = None) -> None:
        """Use these clients from now on; who made them closes them. None makes own ones again."""
        self._clients.bind(client, aclient)

    def close(self) -> None:
        """Close the client that was made here; a later enqueue makes another one."""
        self._clients.close()

    async def aclose(self) -> None:
        """Close the async client that was made here for this event loop."""
        await self._clients.aclose()


def _place(task: Task[..., Any]) -> str:
    function = task.function
    return f"{function.__module__}.{getattr(function, '__qualname__', task.name)}"


def _link(middleware: Middleware, following: CallNext) -> CallNext:
    def call(context: Context) -> Awaitable[Any]:
        return middleware(context, following)

    return call
