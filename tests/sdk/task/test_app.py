"""What an app knows: its tasks, who runs which job, what surrounds a handler."""

import asyncio
import inspect
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any, cast

import jsonschema_rs
import msgspec
import pytest

from corvo_sdk import Context, Corvo
from corvo_sdk.payload import TaskDefinitionError


def context() -> Context:
    return cast("Context", SimpleNamespace(notes=[]))


def test_a_task_is_called_as_the_function_it_was() -> None:
    """Calling it runs it; what documentation tools look at is the function's."""
    app = Corvo()

    @app.task(queue="emails")
    def send(to: str) -> str:
        """Send it."""
        return f"sent to {to}"

    assert send("a") == "sent to a"
    assert send.__doc__ == "Send it."
    assert send.__name__ == "send"
    assert __name__ == send.__module__
    assert list(inspect.signature(send).parameters) == ["to"]
    assert (send.name, send.queue, send.is_async) == ("send", "emails", False)


def test_a_coroutine_function_stays_one() -> None:
    """Calling an async task gives a coroutine."""
    app = Corvo()

    @app.task()
    async def fetch(url: str) -> int:
        return len(url)

    assert fetch.is_async
    assert asyncio.run(fetch("abc")) == 3


def test_a_worker_finds_the_task_of_a_job() -> None:
    """The tag decides; without it the only task of the queue; otherwise nobody."""
    app = Corvo()

    @app.task(queue="a")
    def first() -> None: ...
    @app.task(queue="b")
    def second() -> None: ...
    @app.task(queue="b", name="third.one")
    def third() -> None: ...

    assert app.queues() == ["a", "b"]
    assert {"first": first, "second": second, "third.one": third} == dict(app.tasks)
    assert first is app.find("a", {})
    assert second is app.find("elsewhere", {"task": "second"})
    assert app.find("b", {}) is None
    assert app.find("unknown", {}) is None
    assert app.find("a", {"task": "unknown"}) is None


def test_two_functions_cannot_share_a_name() -> None:
    """Jobs are told apart by the name; the same function again is a module loaded again."""
    app = Corvo()

    def one() -> None: ...
    def two() -> None: ...

    app.task()(one)
    with pytest.raises(TaskDefinitionError, match="are both named one"):
        app.task(name="one")(two)
    again = app.task()(one)
    assert {"one": again} == dict(app.tasks)


@pytest.mark.parametrize(
    ("declare", "reason"),
    [
        (lambda app: app.task(lambda: None), "with parentheses"),
        (lambda app: app.task()(lambda: None), "has no name"),
        (lambda app: app.task(name="x")(int), "a task is a function"),
        (lambda app: app.task(name="x")(3), "a task is a function"),
        (lambda app: app.task(name="x")(lambda: (yield)), "a generator"),
        (lambda app: app.task(priority="urgent"), "priority is 'urgent'"),
        (lambda app: app.task(backoff="slow"), "backoff is 'slow'"),
        (lambda app: app.task(timeout="soon"), "timeout is 'soon'"),
        (lambda app: app.task(lease=0), "lease is zero"),
        (lambda app: app.task(base_delay=-1), "base_delay is -1"),
        (lambda app: app.task(unique=3), "unique is True"),
        (lambda app: app.task(colour="red"), "no option 'colour'"),
    ],
)
def test_a_wrong_declaration_is_refused_where_it_stands(
    declare: Callable[[Any], Any], reason: str
) -> None:
    """The error comes at import and names the option; no task is left behind."""
    app = Corvo()
    with pytest.raises((TypeError, ValueError), match=reason):
        declare(app)
    assert dict(app.tasks) == {}


def test_options_of_the_worker_are_milliseconds() -> None:
    """What the worker keeps is checked once and handed over as integers."""
    app = Corvo()

    @app.task(timeout="1m", lease=90, process=True, at_most_once=True)
    def work() -> None: ...

    options = work.options
    assert (options.timeout_ms, options.lease_ms) == (60_000, 90_000)
    assert options.process
    assert work.process
    assert options.at_most_once


def test_every_task_describes_its_payload() -> None:
    """The schema accepts what the task encodes and refuses what it refuses."""
    app = Corvo()

    class Address(msgspec.Struct):
        street: str

    @app.task()
    def move(name: str, count: int = 1) -> None: ...

    def ship(address: Address) -> None: ...

    ship.__annotations__["address"] = Address
    ship = app.task()(ship)  # type: ignore[assignment]
    schemas = app.schemas()
    assert list(schemas) == ["move", "ship"]
    check = jsonschema_rs.validator_for(schemas["move"])
    assert check.is_valid(msgspec.json.decode(move.encode("a", 2)))
    assert not check.is_valid({"name": 1})
    assert not check.is_valid({"count": 1})
    assert jsonschema_rs.validator_for(schemas["ship"]).is_valid({"street": "x"})


def test_middleware_wraps_in_the_order_it_was_declared() -> None:
    """The first is the outermost, and what it returns is the result."""
    app = Corvo()
    notes: list[str] = []

    @app.middleware
    async def outer(context: Context, call_next: Any) -> Any:
        notes.append("outer in")
        result = await call_next(context)
        notes.append("outer out")
        return result + 1

    @app.middleware
    async def inner(context: Context, call_next: Any) -> Any:
        notes.append("inner")
        return await call_next(context)

    async def handler(_: Context) -> int:
        notes.append("handler")
        return 1

    assert asyncio.run(app.surround(context(), handler)) == 2
    assert notes == ["outer in", "inner", "handler", "outer out"]
    assert app.has_middleware()


def test_middleware_sees_what_a_handler_raises() -> None:
    """An exception passes through, and one that is caught is not an error any more."""
    app = Corvo()

    @app.middleware
    async def forgiving(context: Context, call_next: Any) -> Any:
        try:
            return await call_next(context)
        except KeyError:
            return "forgiven"

    async def handler(_: Context) -> int:
        raise KeyError

    assert asyncio.run(app.surround(context(), handler)) == "forgiven"


def test_a_lifespan_opens_before_and_closes_after() -> None:
    """A generator or a context manager; what it yields is the state."""
    notes: list[str] = []

    async def generator() -> AsyncIterator[str]:
        notes.append("open")
        try:
            yield "state"
        finally:
            notes.append("close")

    async def enter(app: Corvo) -> Any:
        async with app.running() as state:
            notes.append("running")
            return state

    for lifespan in (generator, asynccontextmanager(generator)):
        app = Corvo()
        app.lifespan(lifespan)
        notes.clear()
        assert asyncio.run(enter(app)) == "state"
        assert notes == ["open", "running", "close"]
        with pytest.raises(TypeError, match="one lifespan"):
            app.lifespan(lifespan)
    assert asyncio.run(enter(Corvo())) is None


def test_declaring_tasks_loads_no_transport() -> None:
    """A process that imports tasks and enqueues nothing pays for no HTTP library and no drivers."""
    code = """
import sys
from corvo_sdk import Corvo
app = Corvo()
@app.task()
def work(a: int) -> None: ...
work.call(1)
heavy = {"aiohttp", "urllib3", "pydantic", "opentelemetry", "sqlalchemy", "sqlite3"}
print(sorted(heavy & set(sys.modules)))
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
