"""What goes over a stream, as structs: the frames of both sides, for every encoding.

Items have the shapes of the HTTP calls, with the name of their job inside. Documents are `Raw`: a
codec sees to it that they hold JSON text once a frame is decoded, and the encoding's own form of it
when one is about to be encoded.
"""

from typing import Annotated

from msgspec import Meta, Raw, Struct

from corvo.api import wire
from corvo.model import limits

RequestId = Annotated[int, Meta(ge=0, le=limits.SAFE_INTEGER_MAX)]


class FailItem(wire.FailRequest, kw_only=True, gc=False):
    """A failed attempt."""

    job_id: str


class ReleaseItem(wire.ReleaseRequest, kw_only=True, gc=False):
    """A job given back."""

    job_id: str


class SnoozeItem(wire.SnoozeRequest, kw_only=True, gc=False):
    """A job given back for later."""

    job_id: str


class HoldItem(wire.HoldRequest, kw_only=True, gc=False):
    """A job set aside until somebody decides."""

    job_id: str


class BeatItem(wire.HeartbeatItem, kw_only=True, gc=False):
    """A sign of life about one job."""

    job_id: str


class CreditItem(Struct, kw_only=True, gc=False):
    """How many places a worker has for jobs of some queues."""

    queues: Annotated[list[str], Meta(min_length=1, max_length=limits.FETCH_QUEUES_MAX)]
    slots: Annotated[int, Meta(ge=0, le=limits.SAFE_INTEGER_MAX)]
    lease_duration: wire.Duration | None = None


class HeldItem(Struct, kw_only=True, gc=False):
    """A job a worker believes to hold."""

    job_id: str
    lease_token: wire.Token


class ResumeFields(Struct, kw_only=True, gc=False):
    """Which stream goes on over this connection, and what the worker knows of it."""

    stream_id: str
    received: RequestId | None = None
    jobs: Annotated[list[HeldItem], Meta(max_length=limits.STREAM_INFLIGHT_MAX)] | None = None


class ClientFrame(Struct, kw_only=True):
    """One frame of a client; every list may be absent."""

    request_id: RequestId | None = None
    worker_id: str | None = None
    hostname: str | None = None
    version: str | None = None
    draining: bool | None = None
    received: RequestId | None = None
    resume: ResumeFields | None = None
    acks: list[wire.AckItem] | None = None
    fails: list[FailItem] | None = None
    releases: list[ReleaseItem] | None = None
    snoozes: list[SnoozeItem] | None = None
    holds: list[HoldItem] | None = None
    heartbeats: list[BeatItem] | None = None
    enqueues: list[wire.EnqueueRequest] | None = None
    credits: list[CreditItem] | None = None
    queues: Annotated[list[str], Meta(max_length=limits.FETCH_QUEUES_MAX)] | None = None
    lease_duration: wire.Duration | None = None
    fetch_count: Annotated[int, Meta(ge=0, le=limits.SAFE_INTEGER_MAX)] | None = None


class Problem(Struct, kw_only=True, omit_defaults=True, gc=False):
    """Why a frame was refused or a stream ends: the envelope of errors."""

    error: str
    code: str
    field: str | None = None
    hint: str | None = None
    retry_after_ms: int = 0


class Result(Struct, kw_only=True, omit_defaults=True, gc=False):
    """What came of one item. Only what is said is sent."""

    job_id: str = ""
    status: str = ""
    next_attempt_at: str | None = None
    attempts_remaining: int | None = None
    scheduled_at: str | None = None
    lease_expires_at: str | None = None
    unique_existing: bool | None = None
    replaced: bool | None = None
    replayed: bool | None = None
    result: Raw | None = None
    queues: list[str] | None = None
    slots: int | None = None
    in_flight: int | None = None
    error: str | None = None
    code: str | None = None
    field: str | None = None
    hint: str | None = None
    state: str | None = None
    unique_job_id: str | None = None
    retry_after_ms: int = 0


class Job(Struct, kw_only=True, gc=False):
    """A job handed to a worker: the members of an answer of `POST /fetch`."""

    job_id: str
    queue: str
    payload: Raw
    attempt: int
    max_retries: int
    lease_duration: int
    lease_token: int
    priority: str
    checkpoint: Raw | None
    tags: dict[str, str]
    group: str | None
    created_at: str
    scheduled_at: str | None
    trace: Raw | None


class Signal(Struct, kw_only=True, omit_defaults=True, gc=False):
    """A word about one job in flight: a cancel, a warning, a loss, or that it is held."""

    job_id: str
    lease_token: int
    lease_expires_at: str | None = None
    reason: str | None = None


class StreamLimits(Struct, kw_only=True, gc=False):
    """What a client should know before it meets it."""

    frame_bytes_max: int
    frame_items_max: int
    in_flight_max: int
    unanswered_max: int
    idle_timeout_ms: int


class StreamInfo(Struct, kw_only=True, gc=False):
    """The answer to the first frame: the name of the stream, and what it holds."""

    stream_id: str
    resumed: bool
    held: list[Signal]
    lost: list[Signal]
    limits: StreamLimits


class AnswerFrame(Struct, kw_only=True, omit_defaults=True):
    """The answer to one frame. `request_id` is always there."""

    request_id: int | None = None
    index: int = 0
    acked: int = 0
    acks: list[Result] = []
    fails: list[Result] = []
    releases: list[Result] = []
    snoozes: list[Result] = []
    holds: list[Result] = []
    heartbeats: list[Result] = []
    enqueues: list[Result] = []
    credits: list[Result] = []
    jobs: list[Job] | None = None
    stream: StreamInfo | None = None
    error: Problem | None = None


class PushFrame(Struct, kw_only=True, omit_defaults=True):
    """What the server says unasked."""

    push: int = 0
    jobs: list[Job] = []
    cancels: list[Signal] = []
    warnings: list[Signal] = []
    lost: list[Signal] = []
    drain: Problem | None = None
    closing: Problem | None = None


ServerFrame = AnswerFrame | PushFrame
