"""Documents of a job that may be large: checkpoint, result, progress, usage; and its error records.

Small ones lie in the job record; one over `INLINE_BYTES_MAX` gets its own key, so that a state
change or a heartbeat does not rewrite it.
"""

import msgspec

from corvo.keys import codec, space
from corvo.machine.places import rare
from corvo.machine.state import State
from corvo.model import job as jb
from corvo.model import limits
from corvo.model.job import Job, JobError

_OPENINGS_MAX = 32  # brackets in a report of usage that is looked into
_ITERATION_MAX = 2**31 - 1
_STATUS_CHARACTERS_MAX = 40


class _Iteration(msgspec.Struct, gc=False):
    """What of a report of usage speaks of an iteration."""

    iteration: int
    status: str = "reported"
    input_tokens: int = 0
    output_tokens: int = 0


_decode_iteration = msgspec.json.Decoder(_Iteration).decode


def _store(state: State, job: Job, value: bytes | None, kind: bytes, flag: int) -> bytes | None:
    """Write a blob when the value is large; returns what stays inline."""
    key = space.blob_key(job.ns, job.id, kind)
    if value is not None and len(value) > limits.INLINE_BYTES_MAX:
        state.writes[key] = value
        job.flags |= flag
        return None
    if job.flags & flag:
        state.writes[key] = None
        job.flags &= ~flag
    return value


def set_checkpoint(state: State, job: Job, value: bytes | None) -> None:
    """Keep a checkpoint."""
    job.checkpoint = _store(state, job, value, space.BLOB_CHECKPOINT, jb.FLAG_CHECKPOINT_BLOB)


def set_result(state: State, job: Job, value: bytes | None) -> None:
    """Keep a result."""
    job.result = _store(state, job, value, space.BLOB_RESULT, jb.FLAG_RESULT_BLOB)


def set_progress(state: State, job: Job, value: bytes | None) -> None:
    """Keep the last progress report."""
    kept = _store(state, job, value, space.BLOB_PROGRESS, jb.FLAG_PROGRESS_BLOB)
    rare(job).progress = kept


def set_usage(state: State, job: Job, value: bytes | None) -> None:
    """Keep the last usage report, as given."""
    rare(job).usage = _store(state, job, value, space.BLOB_USAGE, jb.FLAG_USAGE_BLOB)


def iteration_of(usage: bytes) -> dict[str, object] | None:
    """Say which iteration a report of usage is about; None when it names none.

    Safety: how deep a document may be nested before it can not be read depends on the interpreter,
    so only flat ones are looked into. Anything that does not fit is no iteration, never a fault.
    """
    if b'"iteration"' not in usage or usage.count(b"{") + usage.count(b"[") > _OPENINGS_MAX:
        return None
    try:
        found = _decode_iteration(usage)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None
    if not 0 <= found.iteration <= _ITERATION_MAX:
        return None
    about: dict[str, object] = {
        "iteration": found.iteration,
        "status": found.status[:_STATUS_CHARACTERS_MAX],
    }
    for name in ("input_tokens", "output_tokens"):
        count = getattr(found, name)
        if 0 < count <= _ITERATION_MAX:
            about[name] = count
    return about


def checkpoint(state: State, job: Job) -> bytes | None:
    """Read the current checkpoint."""
    return _read(state, job, job.checkpoint, space.BLOB_CHECKPOINT, jb.FLAG_CHECKPOINT_BLOB)


def result(state: State, job: Job) -> bytes | None:
    """Read the result."""
    return _read(state, job, job.result, space.BLOB_RESULT, jb.FLAG_RESULT_BLOB)


def progress(state: State, job: Job) -> bytes | None:
    """Read the last progress report."""
    inline = job.rare.progress if job.rare else None
    return _read(state, job, inline, space.BLOB_PROGRESS, jb.FLAG_PROGRESS_BLOB)


def usage(state: State, job: Job) -> bytes | None:
    """Read the last usage report."""
    inline = job.rare.usage if job.rare else None
    return _read(state, job, inline, space.BLOB_USAGE, jb.FLAG_USAGE_BLOB)


def _read(state: State, job: Job, inline: bytes | None, kind: bytes, flag: int) -> bytes | None:
    if job.flags & flag:
        return state.get(space.blob_key(job.ns, job.id, kind))
    return inline


def add_error(state: State, job: Job, error: str, backtrace: str = "") -> None:
    """Record a failed attempt; the first and the last fifty are kept."""
    found = rare(job)
    number = found.errors
    found.errors = number + 1
    job.flags |= jb.FLAG_ERRORS
    record = JobError(
        job.attempt,
        job.run,
        error,
        backtrace,
        state.now_ms,
        job.started_ms,
        job.worker,
        max(0, state.now_ms - job.started_ms) if job.started_ms else 0,
    )
    state.writes[space.error_key(job.ns, job.id, number)] = codec.encode(record)
    if number > limits.ERRORS_KEPT_LAST:
        state.writes[space.error_key(job.ns, job.id, number - limits.ERRORS_KEPT_LAST)] = None


def error_numbers(job: Job) -> list[int]:
    """Name the error records that are kept."""
    count = job.rare.errors if job.rare else 0
    first = max(1, count - limits.ERRORS_KEPT_LAST)
    return ([0] if count else []) + list(range(first, count))


def errors(state: State, job: Job) -> list[JobError]:
    """Read the error records that are kept, oldest first."""
    raws = (state.get(space.error_key(job.ns, job.id, n)) for n in error_numbers(job))
    return [codec.decode_error(raw) for raw in raws if raw is not None]


def last_error(state: State, job: Job) -> str:
    """Read the message of the last failed attempt; empty when none failed."""
    count = job.rare.errors if job.rare else 0
    if not count:
        return ""
    raw = state.get(space.error_key(job.ns, job.id, count - 1))
    return codec.decode_error(raw).error if raw is not None else ""


def erase(state: State, job: Job) -> None:
    """Remove every document and error of a job."""
    for flag, kind in (
        (jb.FLAG_CHECKPOINT_BLOB, space.BLOB_CHECKPOINT),
        (jb.FLAG_RESULT_BLOB, space.BLOB_RESULT),
        (jb.FLAG_PROGRESS_BLOB, space.BLOB_PROGRESS),
        (jb.FLAG_USAGE_BLOB, space.BLOB_USAGE),
    ):
        if job.flags & flag:
            state.writes[space.blob_key(job.ns, job.id, kind)] = None
    if job.flags & jb.FLAG_ERRORS:
        for number in error_numbers(job):
            state.writes[space.error_key(job.ns, job.id, number)] = None
