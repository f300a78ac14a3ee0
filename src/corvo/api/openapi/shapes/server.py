"""The server itself: health, workers, imports, the search index."""

from typing import Any, Literal

from msgspec import UNSET, Struct, UnsetType

from corvo.api.openapi.shapes.scalars import Count, Instant


class Health(Struct, kw_only=True):
    """Whether the server takes work."""

    status: Literal["ok", "starting", "draining", "stopped"]
    view: str


class Alive(Struct, kw_only=True):
    """The process answers."""

    status: Literal["ok"]


class Info(Struct, kw_only=True):
    """Which server this is and what it can do."""

    server_version: str
    api_version: str
    features: list[str]


class Worker(Struct, kw_only=True):
    """Somebody who fetched or sent a heartbeat lately."""

    id: str
    hostname: str | None
    version: str | None
    queues: list[str]
    slots: Count | None
    jobs: Count
    last_fetch_at: Instant | None
    last_heartbeat_at: Instant | None
    started_at: Instant | None
    status: Literal["healthy", "stale", "draining"]


class ClusterStatus(Struct, kw_only=True):
    """Where the log stands, and figures of the pipeline; further members come and go."""

    mode: Literal["single"]
    phase: str
    index: Count
    chain: str
    epoch: str
    machine_version: Count


class ImportRefusal(Struct, kw_only=True):
    """A record that was not taken, by the number of its line."""

    line: Count
    code: str
    error: str
    unique_job_id: str | UnsetType = UNSET


class ImportAnswer(Struct, kw_only=True):
    """How many records of each kind were taken, and which were not."""

    queues: Count
    limits: Count
    jobs: Count
    batches: Count
    schedules: Count
    webhooks: Count
    refused: list[ImportRefusal]
    index: Count


class ViewPosition(Struct, kw_only=True):
    """What the search index has reached."""

    position: Count
    seq: Count
    floor_seq: Count


class Rebuild(Struct, kw_only=True):
    """How far the last rebuild of the search index is."""

    status: Literal["none", "running", "done"]
    step: str | None
    reason: str | None
    done: Count
    rebuilds: Count


class RebuildProgress(Rebuild, kw_only=True):
    """How far the last rebuild is, and whether the search index is up."""

    view: str
    lag: Count


class OpenApi(Struct, kw_only=True):
    """This document."""

    openapi: str
    info: dict[str, Any]
    paths: dict[str, Any]
    components: dict[str, Any]
