"""What type checkers know about tasks. Read by mypy and pyright in a test, never run.

A line that must be refused carries an ignore for each checker; both are told to complain about an
ignore that is not needed, so a check that goes lost makes the test fail.
"""

from collections.abc import Coroutine
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, assert_type

from corvo_sdk import Context, Corvo, JobHandle, Snooze, chain
from corvo_sdk.batch import BatchHandle
from corvo_sdk.context import Context as ContextItself
from corvo_sdk.task import Producer, TaskCall

app = Corvo("typed")


@dataclass
class Order:
    """A payload."""

    id: int


@app.task(queue="emails", retries=3, unique="mail:{to}", backoff="linear")
def send(to: str, count: int = 1, *, urgent: bool = False) -> bool:
    """A plain function."""
    return urgent and bool(to * count)


@app.task()
async def download(url: str) -> bytes:
    """A coroutine function."""
    return url.encode()


@app.task()
def ship(ctx: Context, order: Order) -> str:
    """A function that wants the context."""
    return f"{ctx.job_id}{order.id}"


@app.task()
async def pack(context: ContextItself, order: Order, *, fast: bool) -> list[int]:
    """A coroutine function that wants the context."""
    return [context.attempt, order.id, fast]


@app.task()
def tidy() -> None:
    """Nothing in, nothing out."""


@app.task()
def patient(count: int) -> int | Snooze:
    """A handler may return a control value."""
    return Snooze("5m") if count else 1


@app.task()
def loose(document: object, count: int = 1) -> int:
    """A first parameter that may be anything."""
    return count + bool(document)


@app.task()
async def loose_later(document: object) -> str:
    """The same, as a coroutine function."""
    return str(document)


# --- a direct call is the function -------------------------------------------------------------

assert_type(send("a", 2, urgent=True), bool)
send(1)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
send()  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]


async def direct(context: Context) -> None:
    """Calls inside a loop."""
    waiting: Coroutine[Any, Any, bytes] = download("u")
    assert_type(await waiting, bytes)
    assert_type(ship(context, Order(1)), str)
    assert_type(await pack(context, Order(1), fast=True), list[int])
    ship(Order(1))  # type: ignore[call-arg, arg-type]  # pyright: ignore[reportCallIssue]


# --- an enqueue has the parameters of the function, without the context -------------------------

assert_type(send.enqueue("a", count=2), JobHandle[bool])
assert_type(send.enqueue("a").result(5), bool)
assert_type(download.enqueue("u"), JobHandle[bytes])
assert_type(ship.enqueue(Order(1)), JobHandle[str])
assert_type(pack.enqueue(Order(1), fast=True).result(), list[int])
assert_type(tidy.enqueue(), JobHandle[None])
assert_type(patient.enqueue(1), JobHandle[int | Snooze])
assert_type(loose.enqueue({"a": 1}, count=2), JobHandle[int])
assert_type(loose_later.enqueue(document=[]), JobHandle[str])
send.enqueue("a", "2")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
send.enqueue("a", cout=2)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
send.enqueue()  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
download.enqueue(b"u")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
ship.enqueue(1)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
pack.enqueue(Order(1))  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
tidy.enqueue(1)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]


async def awaited(context: Context) -> None:
    """The async twins have the same parameters."""
    assert_type(await send.aenqueue("a"), JobHandle[bool])
    assert_type(await (await download.aenqueue("u")).aresult(), bytes)
    assert_type(await ship.aenqueue(Order(1)), JobHandle[str])
    assert_type(await send.aenqueue_many([send.call("a")]), list[JobHandle[bool]])
    await ship.aenqueue(context, Order(1))  # type: ignore[call-arg, arg-type]  # pyright: ignore[reportCallIssue]


# --- options keep the parameters ----------------------------------------------------------------

later = send.with_options(priority="high", tags={"a": "b"}).in_("5m")
assert_type(later.enqueue("a"), JobHandle[bool])
assert_type(send.at(datetime.now(UTC)).with_options(unique=None).call("a"), TaskCall[bool])
assert_type(ship.in_(5).enqueue(Order(1)), JobHandle[str])
later.enqueue(1)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
later("a")  # type: ignore[operator]  # pyright: ignore[reportCallIssue]
send.with_options(priority="soon")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
send.with_options(prority="high")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
app.task(retires=3)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
app.task(backoff="slow")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def generic(producer: Producer[[str], int]) -> JobHandle[int]:
    """A task can be passed on by its parameters and its result."""
    return producer.enqueue("a")


# --- many at once --------------------------------------------------------------------------------

assert_type(send.call("a"), TaskCall[bool])
assert_type(send.enqueue_many([send.call("a"), later.call("b")]), list[JobHandle[bool]])
send.enqueue_many([download.call("u")])  # type: ignore[list-item]  # pyright: ignore[reportArgumentType]
send.call(1)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
mixed: list[TaskCall[Any]] = [send.call("a"), download.call("u")]
assert_type(app.enqueue_many(mixed), list[JobHandle[Any]])

assert_type(app.enqueue_batch([send.call("a")], callback=tidy.call()), BatchHandle[bool])
assert_type(chain(send.call("a"), download.call("u"), on_exit=tidy.call()), TaskCall[bool])
chain(send)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]

# --- schedules -----------------------------------------------------------------------------------

app.schedule("0 7 * * *", tidy, timezone="Europe/Berlin")
app.schedule("0 7 * * *", send.call("a"), name="mail", overlap="skip")
app.schedule("0 7 * * *", send)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
app.schedule("0 7 * * *", tidy, overlap="never")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
