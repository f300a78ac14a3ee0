"""What a worker is told about its jobs: cancels, lost leases, and leases about to be lost."""

from typing import TYPE_CHECKING

from corvo.api.stream.frames import PushFrame, Signal
from corvo.api.stream.held import Held
from corvo.api.stream.supply import Supply
from corvo.api.values import maybe_instant
from corvo.model.ids import JOB, render_id
from corvo.model.job import ACTIVE, END_LOST, HELD, Job
from corvo.model.view import JobView

if TYPE_CHECKING:
    from corvo.engine import Engine


def look(supply: Supply, held: Held, view: JobView | None, frame: PushFrame) -> None:
    """Something happened to a job in flight: see whether it is still ours, or is cancelled."""
    job = view.job if view is not None else None
    if job is None:
        lose(supply, held, "deleted", frame)
    elif job.token != held.token or job.state != ACTIVE:
        is_expired = job.token != held.token or job.ended == END_LOST
        reason = "held" if job.state == HELD else "settled"
        lose(supply, held, "lease_expired" if is_expired else reason, frame)
    elif is_cancelled(job) and not held.is_cancel_sent and supply.outlet is not None:
        held.is_cancel_sent = True
        frame.cancels.append(signal_of(held))


def lose(supply: Supply, held: Held, reason: str, frame: PushFrame) -> None:
    """Count a job out that is no longer the worker's, and say so."""
    frame.lost.append(signal_of(held, reason=reason))
    supply.drop(held)


def warn(engine: "Engine", ns: int, supply: Supply, now_ms: int) -> None:
    """Warn of leases that will end soon, and find out when to look again."""
    supply.next_warning_ms = 0
    frame = PushFrame()
    for held in list(supply.held.values()):
        if held.is_warned:
            continue
        if held.warn_at_ms <= now_ms:
            view = engine.read.job(ns, held.id)
            if view is None or view.job.token != held.token:
                continue  # the feed will say so
            # Heartbeats may have come another way.
            held.lease_until_ms = view.job.lease_until_ms
        if held.warn_at_ms <= now_ms:
            held.is_warned = True
            expires_at = maybe_instant(held.lease_until_ms)
            frame.warnings.append(signal_of(held, expires_at=expires_at))
        else:
            supply.expect_warning(held)
    if frame.warnings:
        supply.send(frame)


def is_cancelled(job: Job) -> bool:
    """Whether somebody asked to cancel an active job."""
    return job.rare is not None and job.rare.cancel_ms > 0


def signal_of(held: Held, *, reason: str | None = None, expires_at: str | None = None) -> Signal:
    """A word about a job in flight."""
    return Signal(
        job_id=render_id(JOB, held.id),
        lease_token=held.token,
        reason=reason,
        lease_expires_at=expires_at,
    )
