"""`corvo enqueue`: one job with every option there is, or many from lines of JSON."""

import secrets
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import IO, Any, Final, cast

import click
import msgspec

from corvo.cli.arguments import (
    DURATION,
    PRIORITIES,
    STRICT,
    JsonError,
    complete_queue,
    document,
    given,
    instant,
    json_lines,
    parse_json,
    tags_of,
)
from corvo.cli.progress import Bar
from corvo.cli.session import Session, connected
from corvo.model.limits import ENQUEUE_BATCH_MAX
from corvo.runtime.clock import SystemClock

JOBS_PER_CALL: Final = 1_000
BYTES_PER_CALL: Final = 8 << 20  # a call takes sixteen MiB
_HOLDS: Final = ("hold_reason", "hold_timeout", "hold_timeout_action")
_DOCUMENTS: Final = ("chain", "trace", "checkpoint")


@click.command()
@click.argument("queue", required=False, shell_complete=complete_queue)
@click.argument("payload", required=False)
@click.option("--priority", type=click.Choice(PRIORITIES))
@click.option("--at", "--scheduled-at", "scheduled_at", help="earliest start: a date or time")
@click.option("--in", "delay", type=DURATION, help="earliest start from now, such as 10m")
@click.option("--expire-after", help="give up when it did not start by then, such as 1h")
@click.option("--max-retries", type=int, help="attempts in all, the first one included")
@click.option("--retry-backoff", type=click.Choice(["none", "fixed", "linear", "exponential"]))
@click.option("--retry-base-delay", help="before the second attempt, such as 5s")
@click.option("--retry-max-delay", help="the longest delay, such as 10m")
@click.option("--retry-jitter", type=float, help="share by which a delay varies, 0 to 1")
@click.option("--unique-key", help="at most one live job of the queue with this key")
@click.option("--unique-period", help="how long the key counts, such as 1h")
@click.option(
    "--unique-mode", type=click.Choice(["until_done", "until_start", "window", "replace"])
)
@click.option("--group", help="fairness group within the queue")
@click.option("--limit-key", help="key that limits of the queue apply to")
@click.option("--limit", "limits", multiple=True, help="named limit it must pass; repeatable")
@click.option("--cost", type=int, help="tokens it takes from a rate")
@click.option("--depends-on", multiple=True, help="job that must be completed first; repeatable")
@click.option("--on-dependency-failure", type=click.Choice(["fail", "run", "hold"]))
@click.option("--parent-id", help="job it belongs to, for reference")
@click.option("--chain", help="JSON: steps that follow, on_failure, on_exit; @FILE reads a file")
@click.option("--hold", is_flag=True, help="wait for corvo approve")
@click.option("--hold-reason", help="why it waits; implies --hold")
@click.option("--hold-timeout", help="how long it waits, such as 1d; implies --hold")
@click.option("--hold-timeout-action", type=click.Choice(["none", "cancel", "approve"]))
@click.option("--tag", "tags", multiple=True, help="NAME=VALUE; repeatable")
@click.option("--trace", help="JSON handed to the worker")
@click.option("--checkpoint", help="JSON the worker starts from")
@click.option("--idempotency-key", help="a repeated call with this key changes nothing")
@click.option("--batch", type=click.File("rb"), help="a job per line of JSON; - reads stdin")
@click.option("--payloads", type=click.File("rb"), help="a payload per line; - reads stdin")
@click.option("--callback-queue", help="a job there once all jobs of --batch ended")
@click.option("--callback-payload", help="JSON of that job")
@connected
def enqueue(session: Session, queue: str | None, payload: str | None, **options: Any) -> None:
    """Enqueue a job into QUEUE, or many. PAYLOAD is JSON; `-` reads stdin, `@FILE` a file.

    Lines of --batch are jobs as POST /enqueue takes them; QUEUE and the options hold for those
    that do not say otherwise. Lines of --payloads are payloads. Piped, it prints the ids alone.
    """
    batch, payloads = options.pop("batch"), options.pop("payloads")
    callback = _callback(options)
    fields = _fields(options)
    if batch is None and payloads is None:
        if queue is None:
            raise click.UsageError("Missing argument 'QUEUE'.")
        if callback is not None:
            raise click.UsageError("--callback-queue needs --batch or --payloads")
        job = {"queue": queue, "payload": document(payload or "{}")} | fields
        _one(session, job)
        return
    if (batch is None) == (payloads is None) or payload is not None:
        raise click.UsageError("give one of PAYLOAD, --batch and --payloads")
    if payloads is not None and queue is None:
        raise click.UsageError("Missing argument 'QUEUE'.")
    key: str = fields.pop("idempotency_key", None) or _new_key()
    defaults = fields | ({"queue": queue} if queue else {})
    jobs = _jobs(cast("IO[bytes]", batch or payloads), defaults, is_payload=batch is None)
    _many(session, jobs, key, callback)


def _fields(options: dict[str, Any]) -> dict[str, Any]:
    """Turn options into the fields of a job."""
    delay, held = options.pop("delay"), options.pop("hold")
    hold = {name.removeprefix("hold_"): options.pop(name) for name in _HOLDS}
    hold = {name: value for name, value in hold.items() if value is not None}
    tags = tags_of(options.pop("tags"))
    fields = given(options)
    for name in _DOCUMENTS:
        if name in fields:
            fields[name] = document(fields[name], f"--{name}")
    if "scheduled_at" in fields and delay is not None:
        raise click.UsageError("give one of --at and --in")
    if "scheduled_at" in fields:
        fields["scheduled_at"] = instant(fields["scheduled_at"])
    elif delay is not None:
        at_s = SystemClock().now_ms() / 1_000 + delay
        fields["scheduled_at"] = datetime.fromtimestamp(at_s, UTC).isoformat()
    if held or hold:
        fields["hold"] = hold or True
    if tags:
        fields["tags"] = tags
    return fields


def _callback(options: dict[str, Any]) -> dict[str, Any] | None:
    queue, payload = options.pop("callback_queue"), options.pop("callback_payload")
    if queue is None:
        if payload is not None:
            raise click.UsageError("--callback-payload needs --callback-queue")
        return None
    callback: dict[str, Any] = {"callback_queue": queue}
    if payload is not None:
        callback["callback_payload"] = document(payload, "--callback-payload")
    return callback


def _new_key() -> str:
    return f"cli-{secrets.token_hex(16)}"


def _one(session: Session, job: dict[str, Any]) -> None:
    # With a key a call whose answer was lost can be sent again without a second job.
    body = {"idempotency_key": _new_key()} | job
    answer = session.call("POST", "/enqueue", body, query=STRICT, is_repeatable=True)

    def render() -> None:
        status = f"  {answer['status']}" if sys.stdout.isatty() else ""
        click.echo(answer["job_id"] + status)

    session.show(answer, render)


def _jobs(file: IO[bytes], defaults: dict[str, Any], *, is_payload: bool) -> Iterator[bytes]:
    """Each job of a file, encoded. Nothing of a portion is sent when one of its lines is no job."""
    for number, line in json_lines(file):
        try:
            read = parse_json(line)
        except JsonError as error:
            raise click.UsageError(f"line {number} {error}") from error
        if is_payload:
            job: dict[str, Any] = defaults | {"payload": msgspec.Raw(line)}
        elif isinstance(read, dict):
            # Members stay as they were written, so that large numbers keep every digit.
            job = defaults | msgspec.json.decode(line, type=dict[str, msgspec.Raw])
        else:
            raise click.UsageError(f"line {number} is no JSON object")
        if "queue" not in job:
            raise click.UsageError(f"line {number} has no queue, and no QUEUE was given")
        yield msgspec.json.encode(job)


def _many(
    session: Session, jobs: Iterator[bytes], key: str, callback: dict[str, Any] | None
) -> None:
    portions = _portions(jobs) if callback is None else iter([_whole(jobs)])
    results: list[dict[str, Any]] = []
    batch_id = None
    with Bar("enqueueing") as bar:
        for number, portion in enumerate(portions):
            body: dict[str, Any] = {"jobs": [msgspec.Raw(job) for job in portion]}
            if callback is not None:
                body["batch"] = callback
            # A command that is repeated repeats all its calls under the same names.
            body["idempotency_key"] = f"{key}#{number}" if number else key
            answer = session.call("POST", "/enqueue/batch", body, query=STRICT, is_repeatable=True)
            batch_id = answer["batch_id"]
            results += answer["results"]
            bar.show(len(results), max(len(results), 1))
            if not session.is_named and not sys.stdout.isatty():
                click.echo("\n".join(answer["job_ids"]))
    if not results:
        raise click.UsageError("there is no job in the file")
    if session.is_named:
        session.show(results if session.form == "jsonl" else _summary(results, batch_id))
    elif sys.stdout.isatty():
        batch = f" as {batch_id}" if batch_id else ""
        click.echo(f"{len(results)} jobs enqueued{batch}")


def _summary(results: list[dict[str, Any]], batch_id: str | None) -> dict[str, Any]:
    ids = [result["job_id"] for result in results]
    return {"count": len(ids), "batch_id": batch_id, "job_ids": ids, "results": results}


def _portions(jobs: Iterator[bytes]) -> Iterator[list[bytes]]:
    portion: list[bytes] = []
    size = 0
    for job in jobs:
        if portion and (len(portion) >= JOBS_PER_CALL or size + len(job) > BYTES_PER_CALL):
            yield portion
            portion, size = [], 0
        portion.append(job)
        size += len(job)
    if portion:
        yield portion


def _whole(jobs: Iterator[bytes]) -> list[bytes]:
    """All jobs in one call, because a batch can not be added to."""
    portion: list[bytes] = []
    for job in jobs:
        portion.append(job)
        if len(portion) > ENQUEUE_BATCH_MAX:
            raise click.UsageError(f"a batch has at most {ENQUEUE_BATCH_MAX} jobs")
    if not portion:
        raise click.UsageError("there is no job in the file")
    return portion
