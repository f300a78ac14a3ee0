"""The settings of a worker, checked before anything starts."""

import os
import socket
from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

from corvo_sdk.duration import Duration, milliseconds

CONCURRENCY_DEFAULT = 10
CONCURRENCY_MAX = 10_000
QUEUES_MAX = 64  # what one fetch may name
LEASE_MS_MIN = 1_000
LEASE_MS_MAX = 86_400_000

LinkKind = Literal["auto", "http", "stream"]


class WorkerSettingsError(ValueError):
    """A worker can not start with these settings; nothing was fetched."""


class Settings(Struct, frozen=True, kw_only=True):
    """How a worker works."""

    queues: dict[str, int]  # slots of the queue; 0: it shares the common ones
    concurrency: int = CONCURRENCY_DEFAULT  # the common slots
    link: LinkKind = "auto"
    lease_ms: int | None = None  # None: what the queue is set to, else the server's default
    shutdown_timeout_s: float = 30.0
    stop_grace_s: float = 5.0  # between asking handlers to stop and releasing their jobs
    thread_grace_s: float = 5.0  # what a sync handler has after its timeout
    unknown_delay_ms: int = 30_000  # how long a job of an unknown task rests
    lag_warning_s: float = 1.0
    processes: int = 0  # of `process=True`; 0: as many as the machine has processors
    worker_id: str = ""
    version: str = ""
    health_port: int | None = None
    health_host: str = "127.0.0.1"
    health_required: bool = True  # else a worker whose port is taken goes on without

    @property
    def slots(self) -> int:
        """How many jobs may run at once."""
        own = sum(self.queues.values())
        return own + (self.concurrency if 0 in self.queues.values() else 0)


def check(settings: Settings) -> Settings:
    """Refuse what can not work. Raises WorkerSettingsError."""
    if not settings.queues:
        raise WorkerSettingsError("there is no queue to work on; declare a task, or name a queue")
    if len(settings.queues) > QUEUES_MAX:
        raise WorkerSettingsError(f"a worker takes at most {QUEUES_MAX} queues")
    for name, slots in settings.queues.items():
        if not 0 <= slots <= CONCURRENCY_MAX:
            raise WorkerSettingsError(f"queue {name}: {slots} slots; 1 to {CONCURRENCY_MAX}")
    if not 1 <= settings.concurrency <= CONCURRENCY_MAX:
        raise WorkerSettingsError(f"concurrency is {settings.concurrency}; 1 to {CONCURRENCY_MAX}")
    lease_ms = settings.lease_ms
    if lease_ms is not None and not LEASE_MS_MIN <= lease_ms <= LEASE_MS_MAX:
        raise WorkerSettingsError(f"the lease is {lease_ms} ms; 1 second to 24 hours")
    if settings.shutdown_timeout_s < 0 or settings.stop_grace_s < 0:
        raise WorkerSettingsError("a time to wait is not negative")
    if settings.link not in {"auto", "http", "stream"}:
        raise WorkerSettingsError(f"link is {settings.link!r}; auto, http or stream")
    return settings


def queues_of(
    wanted: Mapping[str, int] | None, declared: list[str], *, is_undeclared_allowed: bool
) -> tuple[dict[str, int], list[str]]:
    """Choose the queues to fetch, and name those left out because no task is declared on them."""
    if not wanted:
        return dict.fromkeys(declared, 0), []
    known = set(declared)
    left_out = [name for name in wanted if name not in known]
    if is_undeclared_allowed:
        return dict(wanted), []
    return {name: slots for name, slots in wanted.items() if name in known}, left_out


def lease_ms_of(lease: Duration | None) -> int | None:
    """Read a lease as people write it."""
    if lease is None:
        return None
    try:
        return milliseconds(lease, "lease")
    except ValueError as error:
        raise WorkerSettingsError(str(error)) from error


def own_name() -> str:
    """Name a worker: the machine, the process, and something no other has."""
    return f"{socket.gethostname()[:150]}-{os.getpid()}-{os.urandom(3).hex()}"
