"""`corvo seed`: a believable set of data to look at, through the API like any client.

Everything lies in queues that begin with the prefix, so that it can be told from real work and
removed again. Nothing is left to chance: the same count gives the same picture.
"""

from typing import Any, Final

import click

from corvo.cli.arguments import STRICT
from corvo.cli.client import segment
from corvo.cli.failure import CallError
from corvo.cli.progress import Bar
from corvo.cli.session import Session, connected

DEFAULT_COUNT: Final = 200
COUNT_MAX: Final = 100_000
PORTION: Final = 500
FETCH_COUNT: Final = 100
LEASE: Final = "1h"  # long enough to be looked at while it is active

_TENANTS: Final = ("acme-corp", "globex", "initech", "umbrella", "hooli")
_NAMES: Final = ("ada", "grace", "edsger", "barbara", "donald", "frances", "tony")
_TEMPLATES: Final = ("welcome", "invoice", "password-reset", "weekly-digest")
_REGIONS: Final = ("eu-central", "us-east", "ap-south")
_HOSTS: Final = ("worker-1", "worker-2", "worker-3")

# Queue, share of all jobs in percent, priority.
_QUEUES: Final[tuple[tuple[str, int, str], ...]] = (
    ("emails.send", 40, "normal"),
    ("images.resize", 25, "normal"),
    ("billing.charge", 15, "high"),
    ("reports.generate", 12, "normal"),
    ("search.index", 8, "normal"),
)
# What became of every hundred jobs of a queue, in this order; the rest stays pending.
_ENDS: Final[tuple[tuple[str, int], ...]] = (
    ("completed", 55),
    ("dead", 8),
    ("retrying", 5),
    ("active", 4),
)
_ERRORS: Final[tuple[tuple[str, str], ...]] = (
    ("SMTP 550 mailbox unavailable: user@example.com", "mail/smtp.py:88 in send"),
    ("TimeoutError: upstream did not answer within 30s", "net/client.py:41 in request"),
    ("card_declined: insufficient funds (code 51)", "billing/charge.py:17 in charge"),
    ("ValueError: image has no EXIF orientation", "images/resize.py:59 in rotate"),
)
_SCHEDULES: Final[tuple[tuple[str, str, str], ...]] = (
    ("nightly-report", "0 3 * * *", "reports.generate"),
    ("weekly-digest", "0 9 * * MON", "emails.send"),
    ("reindex", "*/30 * * * *", "search.index"),
)


@click.group()
def seed() -> None:
    """Fill a server with data to look at, and take it away again."""


_prefix = click.option("--prefix", default="demo.", show_default=True, help="of all its queues")


@seed.command()
@click.option(
    "--count", type=click.IntRange(20, COUNT_MAX), default=DEFAULT_COUNT, show_default=True
)
@_prefix
@connected
def demo(session: Session, count: int, prefix: str) -> None:
    """Make queues with jobs in every state: done, dead, held, chained, batched, scheduled."""
    made = 0
    with Bar("seeding", count) as bar:
        for queue, percent, priority in _QUEUES:
            share = max(4, count * percent // 100)
            _fill(session, prefix + queue, share, priority)
            _work(session, prefix + queue, share)
            made += share
            bar.show(made)
    specials = _specials(session, prefix)
    schedules = [_schedule(session, prefix, *each) for each in _SCHEDULES]
    _settings(session, prefix)
    summary: dict[str, Any] = {
        "prefix": prefix,
        "jobs": made + specials,
        "queues": [q["name"] for q in session.call("GET", "/queues") if _is_of(q, prefix)],
        "schedules": schedules,
    }

    def render() -> None:
        click.echo(f"{summary['jobs']} jobs in {len(summary['queues'])} queues")
        click.echo("look at: corvo queues, corvo dead --groups, corvo held, corvo schedules")
        click.echo("remove with: corvo seed clear")

    session.show(summary, render)


@seed.command()
@_prefix
@connected
def clear(session: Session, prefix: str) -> None:
    """Remove every queue and schedule that `corvo seed demo` made."""
    if len(prefix) < 2:
        raise click.UsageError("the prefix is too short to be meant")
    removed = [queue["name"] for queue in session.call("GET", "/queues") if _is_of(queue, prefix)]
    for name, _cron, _queue in _SCHEDULES:
        _forget(session, f"/schedules/{segment(prefix + name)}")
    for name in removed:
        session.call("DELETE", f"/queues/{segment(name)}", query={"confirm": "true"})
    _forget(session, f"/limits/{segment(prefix + 'smtp')}")
    session.show({"removed": removed}, lambda: click.echo(f"{len(removed)} queues removed"))


def _is_of(queue: dict[str, Any], prefix: str) -> bool:
    return str(queue["name"]).startswith(prefix)


def _forget(session: Session, path: str) -> None:
    try:
        session.call("DELETE", path)
    except CallError as error:
        if error.code != "NOT_FOUND":
            raise


def _fill(session: Session, queue: str, count: int, priority: str) -> None:
    for start in range(0, count, PORTION):
        numbers = range(start, min(count, start + PORTION))
        jobs = [_job(queue, number, priority) for number in numbers]
        session.call("POST", "/enqueue/batch", {"jobs": jobs}, query=STRICT)


def _job(queue: str, number: int, priority: str) -> dict[str, Any]:
    tenant = _TENANTS[number % len(_TENANTS)]
    payload: dict[str, Any] = {
        "to": f"{_NAMES[number % len(_NAMES)]}@{tenant}.example",
        "template": _TEMPLATES[number % len(_TEMPLATES)],
        "amount": 5 + number * 37 % 500,
        "order": f"ord-{10_000 + number}",
    }
    return {
        "queue": queue,
        "payload": payload,
        "priority": "critical" if number % 29 == 0 else priority,
        "tags": {"tenant": tenant, "region": _REGIONS[number % len(_REGIONS)]},
        "group": tenant,
        "max_retries": 3,
        "retry_base_delay": "10m",
        "retry_max_delay": "1h",
    }


def _work(session: Session, queue: str, count: int) -> None:
    """Be the workers: each job gets the end that its place in the queue says."""
    for end, percent in _ENDS:
        left = max(1, count * percent // 100)
        while left > 0:
            jobs = _fetch(session, queue, min(left, FETCH_COUNT), _HOSTS[left % len(_HOSTS)])
            if not jobs:
                break
            left -= len(jobs)
            _finish(session, end, jobs)


def _fetch(session: Session, queue: str, count: int, host: str) -> list[dict[str, Any]]:
    body = {
        "queues": [queue],
        "worker_id": f"{host}:{queue}",
        "hostname": host,
        "version": "demo",
        "concurrency": 10,
        "count": count,
        "timeout": 0,
        "lease_duration": LEASE,
    }
    return session.call("POST", "/fetch/batch", body)["jobs"]


def _finish(session: Session, end: str, jobs: list[dict[str, Any]]) -> None:
    if end == "completed":
        acks = [
            {"job_id": job["job_id"], "lease_token": job["lease_token"], "result": {"ok": True}}
            for job in jobs
        ]
        session.call("POST", "/ack/batch", {"acks": acks}, query=STRICT)
    elif end == "active":
        beats = {
            job["job_id"]: {
                "lease_token": job["lease_token"],
                "progress": {"done": 3 + number % 7, "total": 10, "message": "working"},
            }
            for number, job in enumerate(jobs)
        }
        session.call("POST", "/heartbeat", {"jobs": beats}, query=STRICT)
    else:
        for number, job in enumerate(jobs):
            error, place = _ERRORS[number % len(_ERRORS)]
            body = {
                "lease_token": job["lease_token"],
                "error": error,
                "backtrace": f"Traceback (most recent call last):\n  {place}\n{error}",
                "retryable": end != "dead",
            }
            session.call("POST", f"/fail/{segment(job['job_id'])}", body, query=STRICT)


def _specials(session: Session, prefix: str) -> int:
    """One of everything else: batch with callback, chain, dependency, hold, schedule, unique."""
    images = [{"queue": f"{prefix}images.resize", "payload": {"image": n}} for n in range(12)]
    callback = {"callback_queue": f"{prefix}reports.generate", "callback_payload": {"of": "album"}}
    session.call("POST", "/enqueue/batch", {"jobs": images, "batch": callback}, query=STRICT)
    chain = {
        "steps": [
            {"queue": f"{prefix}orders.import"},
            {"queue": f"{prefix}billing.charge", "payload": {"step": "charge"}},
            {"queue": f"{prefix}emails.send", "payload": {"template": "receipt"}},
        ],
        "on_failure": {"queue": f"{prefix}reports.generate", "payload": {"alarm": True}},
    }
    first = _enqueue(session, f"{prefix}orders.import", {"order": "ord-1"}, chain=chain)
    _enqueue(session, f"{prefix}reports.generate", {"after": first}, depends_on=[first])
    for amount in (12_000, 48_500, 7_300):
        hold = {"reason": f"refund of {amount} needs a second pair of eyes", "timeout": "7d"}
        _enqueue(session, f"{prefix}billing.refund", {"amount": amount}, hold=hold)
    unique = {"unique_key": "reindex-all", "unique_period": "1d"}
    _enqueue(session, f"{prefix}search.index", {"scope": "all"}, **unique)
    _enqueue(session, f"{prefix}legacy.sync", {"legacy": True}, expire_after="30d")
    when = "2099-01-01T00:00:00Z"
    _enqueue(session, f"{prefix}emails.send", {"template": "happy-new-year"}, scheduled_at=when)
    return len(images) + 8


def _enqueue(session: Session, queue: str, payload: dict[str, Any], **fields: Any) -> str:
    body = {"queue": queue, "payload": payload, "tags": {"tenant": "acme-corp"}} | fields
    return str(session.call("POST", "/enqueue", body, query=STRICT)["job_id"])


def _schedule(session: Session, prefix: str, name: str, cron: str, queue: str) -> str:
    body = {"name": prefix + name, "cron": cron, "queue": prefix + queue, "payload": {"by": name}}
    try:
        session.call("POST", "/schedules", body, query=STRICT)
    except CallError as error:
        if error.code != "NAME_TAKEN":
            raise
    return prefix + name


def _settings(session: Session, prefix: str) -> None:
    session.call("POST", f"/queues/{segment(prefix + 'legacy.sync')}/pause")
    path = f"/queues/{segment(prefix + 'billing.charge')}/concurrency"
    session.call("POST", path, {"max": 5}, query=STRICT)
    path = f"/queues/{segment(prefix + 'emails.send')}/throttle"
    session.call("POST", path, {"rate": 600, "period": "1m"}, query=STRICT)
    session.call("PUT", f"/limits/{segment(prefix + 'smtp')}", {"max": 20}, query=STRICT)
