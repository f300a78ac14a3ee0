"""Options of tasks and of single enqueues, and what becomes of them on the wire."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import msgspec
import pytest

from corvo_sdk import Corvo
from corvo_sdk.options import Unique


@dataclass
class Invoice:
    invoice_id: int
    customer: str = "c"


def options(**declared: Any) -> dict[str, Any]:
    """The wire options of a job whose task was declared with these."""
    app = Corvo()

    @app.task(**declared)
    def bill(invoice_id: int, customer: str = "c") -> None: ...

    return bill.call(7).options


def test_options_get_the_names_of_the_api() -> None:
    """Every option of the decorator arrives under its own name on the wire."""
    found = options(
        retries=5,
        backoff="linear",
        base_delay="1500ms",
        max_delay=timedelta(minutes=1),
        jitter=0.5,
        priority="high",
        expire_after="1h",
        group="g",
        limit_key="k",
        limits=["api"],
        cost=2,
        tags={"team": "a"},
        timeout=5,
        lease="1m",
    )
    assert found == {
        "max_retries": 5,
        "retry_backoff": "linear",
        "retry_base_delay": "1500ms",
        "retry_max_delay": 60,
        "retry_jitter": 0.5,
        "priority": "high",
        "expire_after": 3_600,
        "group": "g",
        "limit_key": "k",
        "limits": ["api"],
        "cost": 2,
        "tags": {"team": "a", "task": "bill"},
    }


def test_every_job_names_its_task() -> None:
    """The tag is set even when the caller sets tags, and can not be replaced by them."""
    app = Corvo()

    @app.task()
    def bill() -> None: ...

    found = bill.with_options(tags={"task": "other", "x": "1"}).call().options
    assert found["tags"] == {"task": "bill", "x": "1"}


def test_templates_are_filled_with_arguments() -> None:
    """Names, defaults and fields of an object are known in a template."""
    found = options(
        unique="invoice:{invoice_id}:{customer}", group="{customer}", limit_key="k{invoice_id:03}"
    )
    assert (
        found["unique_key"],
        found["group"],
        found["limit_key"],
    ) == ("invoice:7:c", "c", "k007")
    app = Corvo()

    @app.task(unique="{invoice_id}/{invoice.customer}")
    def bill(invoice: Invoice) -> None: ...

    assert bill.call(Invoice(3, "x")).options["unique_key"] == "3/x"


def test_a_template_that_does_not_fit_names_what_is_there() -> None:
    """The error lists the arguments, and nothing is sent."""
    with pytest.raises(
        ValueError, match=r"unique does not fit its arguments \(customer, invoice_id\)"
    ):
        options(unique="{invoice}")


def test_unique_by_arguments_ignores_how_they_were_given() -> None:
    """Order, names, spelt-out defaults and numbers of equal value make the same key."""
    app = Corvo()

    @app.task(unique=True)
    def bill(invoice_id: int, share: float = 1) -> None: ...

    def key(call: Any) -> str:
        return call.options["unique_key"]

    same = {
        key(bill.call(7)),
        key(bill.call(invoice_id=7)),
        key(bill.call(share=1, invoice_id=7)),
        key(bill.call(7, 1.0)),
    }
    assert len(same) == 1
    assert key(bill.call(8)) not in same
    assert same.pop().startswith("bill:")


def test_unique_by_arguments_differs_between_tasks() -> None:
    """Two tasks on one queue with equal arguments do not shut each other out."""
    app = Corvo()

    @app.task(unique=True)
    def one(a: int) -> None: ...
    @app.task(unique=True)
    def two(a: int) -> None: ...

    assert one.call(1).options["unique_key"] != two.call(1).options["unique_key"]


def test_unique_by_a_function_gets_the_arguments() -> None:
    """Defaults are filled in, so that the function has all of them."""
    found = options(unique=lambda invoice_id, customer: f"{customer}-{invoice_id}")
    assert found["unique_key"] == "c-7"


def test_unique_has_a_period_and_a_mode() -> None:
    """Both travel with the key."""
    found = options(unique=Unique("x", period="10m", mode="window"))
    assert (
        found["unique_key"],
        found["unique_period"],
        found["unique_mode"],
    ) == ("x", 600, "window")
    with pytest.raises(ValueError, match="mode of unique"):
        options(unique=Unique("x", mode="forever"))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="unique period"):
        options(unique=Unique("x", period="forever"))


def test_options_of_an_enqueue_lie_over_those_of_the_task() -> None:
    """Tags are joined, a None switches unique off, and the task itself stays as it was."""
    app = Corvo()

    @app.task(priority="high", tags={"a": "1", "b": "1"}, unique=True)
    def bill() -> None: ...

    changed = bill.with_options(priority="critical", tags={"b": "2"}, unique=None, queue="other")
    call = changed.call()
    assert call.queue == "other"
    assert call.options == {
        "priority": "critical",
        "tags": {"a": "1", "b": "2", "task": "bill"},
    }
    assert bill.call().options["priority"] == "high"


def test_the_last_word_about_the_time_counts() -> None:
    """A delay after an instant replaces it, and the other way round."""
    app = Corvo()

    @app.task()
    def bill() -> None: ...

    instant = datetime(2030, 1, 1, 12, tzinfo=timezone(timedelta(hours=2)))
    assert (
        bill.in_("1h").at(instant).call().options["scheduled_at"] == "2030-01-01T10:00:00.000+00:00"
    )
    options = bill.at(instant).in_("5m").call().options
    assert (options["delay"], "scheduled_at" in options) == (300, False)


def test_delay_of_a_call_that_somebody_else_sends_becomes_an_instant() -> None:
    """Who relays it may be late; the delay counts from when the call was made."""
    app = Corvo()

    @app.task()
    def bill() -> None: ...

    before = datetime.now(UTC) + timedelta(minutes=5)
    sent = msgspec.json.decode(bill.in_("5m").call().body())
    found = datetime.fromisoformat(sent["scheduled_at"])
    assert "delay" not in sent
    assert timedelta(0) <= found - before + timedelta(milliseconds=1) < timedelta(minutes=1)


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ({"at": datetime(2030, 1, 1)}, "without a time zone"),  # noqa: DTZ001 - the point
        ({"delay": "later"}, "delay is 'later'"),
        ({"at": datetime(2030, 1, 1, tzinfo=UTC), "delay": 5}, "give one of them"),
        ({"priority": "asap"}, "priority is 'asap'"),
        ({"prority": "high"}, "no option 'prority'"),
        ({"timeout": 5}, "no option 'timeout'"),
    ],
)
def test_a_wrong_option_is_refused_before_anything_is_sent(wrong: Any, reason: str) -> None:
    """The error comes from `with_options` itself."""
    app = Corvo()

    @app.task()
    def bill() -> None: ...

    with pytest.raises((TypeError, ValueError), match=reason):
        bill.with_options(**wrong)


def test_a_call_knows_its_whole_body() -> None:
    """What an outbox stores is what an enqueue would have sent."""
    app = Corvo()

    @app.task(queue="q", retries=1)
    def bill(invoice_id: int) -> None: ...

    body = msgspec.json.decode(bill.call(2**60).body())
    assert body == {
        "queue": "q",
        "payload": {"invoice_id": 2**60},
        "max_retries": 1,
        "tags": {"task": "bill"},
    }
