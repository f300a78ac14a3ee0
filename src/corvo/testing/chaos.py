"""What can go wrong around a handler, chosen by a seed.

Delivery is at least once. Each fault here is one way in which a worker or the way to it fails in
production; a handler that survives all of them is idempotent where it has to be. The faults of a
job follow from the seed, the order in which the kit first saw the job and the attempt, and from
nothing else: the same seed repeats the same run.
"""

from collections.abc import Callable, Coroutine, Generator
from enum import Enum
from random import Random
from types import coroutine
from typing import Any, TypeVar

from msgspec import Struct

Result = TypeVar("Result")

AWAITS_MAX = 12  # a lease is lost at one of the first awaits of a handler
ANSWERS_LOST_ONE_IN = 6


class Fault(Enum):
    """What happens to one delivery of a job."""

    NONE = "nothing"
    CRASH_BEFORE_ACK = "the worker dies after the handler, before it reports"
    LEASE_LOST = "the lease is lost while the handler waits"
    DELIVERED_TWICE = "the job runs again before the first worker reports"
    SLOW_SERVER = "the report takes three quarters of the lease to arrive"


class Plan(Struct, frozen=True):
    """The fault of one delivery; for a lost lease, at which await."""

    fault: Fault
    await_number: int = 0


_HARMLESS = Plan(Fault.NONE)


class Chaos:
    """The faults of one run, and a record of what was done."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.lines: list[str] = []
        self._ordinals: dict[str, int] = {}
        self._calls = 0

    def plan(self, job_id: str, task: str, attempt: int, max_retries: int) -> Plan:
        """Choose what happens to a delivery; nothing to the last attempt, which must count."""
        ordinal = self._ordinals.setdefault(job_id, len(self._ordinals))
        if attempt >= max_retries:
            return _HARMLESS
        random = _random(self.seed, "job", ordinal, attempt)
        fault = random.choice(list(Fault))
        plan = Plan(fault, random.randint(1, AWAITS_MAX) if fault is Fault.LEASE_LOST else 0)
        if fault is not Fault.NONE:
            where = f" (await {plan.await_number})" if plan.await_number else ""
            self.lines.append(f"{task} job {ordinal} attempt {attempt}: {fault.value}{where}")
        return plan

    def loses_answer(self, path: str) -> bool:
        """Whether the answer of a repeatable call is lost after the server has acted."""
        self._calls += 1
        random = _random(self.seed, "answer", self._calls, 0)
        is_lost = random.randrange(ANSWERS_LOST_ONE_IN) == 0
        if is_lost:
            self.lines.append(
                f"call {self._calls} {path}: the answer is lost, the client asks again"
            )
        return is_lost

    def render(self) -> str:
        """Say what was done, in order."""
        return "\n".join([f"seed {self.seed}", *self.lines])


def _random(seed: int, kind: str, number: int, attempt: int) -> Random:
    return Random(f"{seed}:{kind}:{number}:{attempt}")  # noqa: S311 - repeatable, not secret


@coroutine
def cut_at_await(
    work: Coroutine[Any, Any, Result], await_number: int, make_error: Callable[[], BaseException]
) -> Generator[Any, Any, Result]:
    """Run a coroutine on the caller's loop and throw into it at its n-th suspension."""
    seen = 0
    sent: Any = None
    thrown: BaseException | None = None
    while True:
        try:
            waiting = work.send(sent) if thrown is None else work.throw(thrown)
        except StopIteration as finished:
            return finished.value
        thrown = None
        seen += 1
        if seen == await_number:
            # The future it waited for is left alone: nobody waits for it any more.
            thrown = make_error()
            if hasattr(waiting, "_asyncio_future_blocking"):
                waiting._asyncio_future_blocking = False  # noqa: SLF001 - as Task does when it resumes
            sent = None
            continue
        try:
            sent = yield waiting
        except BaseException as raised:  # noqa: BLE001 - handed to the coroutine, as `yield from` would
            thrown = raised
