"""Between protobuf messages and the structs of the API.

A request goes through the same decoder as a body of HTTP: its set fields become an object with the
names of the HTTP API, so that types, ranges and the words of refusals are the same everywhere.
"""

from collections.abc import Iterable
from typing import Any, Final, TypeVar

from google.protobuf.message import Message
from msgspec import Raw, Struct
from msgspec.json import encode

from corvo.api.decode import Reader
from corvo.api.stream import frames
from corvo.api.stream.codecs import json_document
from corvo.api.stream.generated import worker_pb2 as pb
from corvo.errors import RequestError

Shape = TypeVar("Shape", bound=Struct)

_DOCUMENT: Final = "_json"
_IGNORED: Final = frozenset({"stream_delta"})
_UNBUILT: Final = frozenset({"agent", "agent_status", "hold_reason"})
_RESULTS: Final = (
    ("ack_results", "acks"),
    ("fail_results", "fails"),
    ("release_results", "releases"),
    ("snooze_results", "snoozes"),
    ("hold_results", "holds"),
    ("heartbeat_results", "heartbeats"),
    ("enqueue_results", "enqueues"),
    ("credit_results", "credits"),
)
_RESULT_FIELDS: Final = tuple(
    field.name for field in pb.ItemResult.DESCRIPTOR.fields if not field.name.endswith(_DOCUMENT)
)


def read(reader: Reader[Shape], message: Message) -> Shape:
    """Make a request of a message. Raises `RequestError`."""
    return reader.read(encode(members(message)), b"")


def members(message: Message, path: str = "") -> dict[str, Any]:
    """The set fields of a message, under the names of the HTTP API."""
    found: dict[str, Any] = {}
    if isinstance(message, pb.CreditItem):
        found["slots"] = message.slots  # zero takes slots back, and would not be listed
    for field, value in message.ListFields():
        name: str = field.name
        inner = f"{path}.{name}" if path else name
        if name in _UNBUILT:
            raise RequestError(
                "this server does not have the feature behind this field",
                code="NOT_SUPPORTED",
                field=inner,
            )
        if name in _IGNORED:
            continue
        if name == "options":
            found |= members(value, path)
        elif name.endswith(_DOCUMENT):
            found[name.removesuffix(_DOCUMENT)] = json_document(value.encode(), inner)
        else:
            found[name] = _value(field, value, inner)
    return found


def _value(field: Any, value: Any, path: str) -> Any:
    kind = field.message_type
    if kind is not None and kind.GetOptions().map_entry:
        if kind.fields_by_name["value"].message_type is None:
            return dict(value)
        return {key: members(item, f"{path}.{key}") for key, item in value.items()}
    if kind is None:
        return list(value) if field.is_repeated else value
    if field.is_repeated:
        return [members(item, f"{path}[{place}]") for place, item in enumerate(value)]
    return members(value, path)


_FRAME: Final = Reader(frames.ClientFrame)


def client_frame(message: pb.LifecycleStreamRequest) -> frames.ClientFrame:
    """Read a frame. Raises `RequestError`; then nothing of it counts."""
    return read(_FRAME, message)


def server_frame(frame: frames.ServerFrame) -> pb.LifecycleStreamResponse:
    """Write a frame."""
    if isinstance(frame, frames.PushFrame):
        return _pushed(frame)
    return _answered(frame)


def _answered(frame: frames.AnswerFrame) -> pb.LifecycleStreamResponse:
    message = pb.LifecycleStreamResponse(
        request_id=frame.request_id or 0, index=frame.index, acked=frame.acked
    )
    for name, source in _RESULTS:
        found: list[frames.Result] = getattr(frame, source)
        if found:
            getattr(message, name).extend(map(item_result, found))
    message.enqueued_job_ids.extend(each.job_id for each in frame.enqueues if each.code is None)
    if frame.jobs:
        message.jobs.extend(map(batch_job, frame.jobs))
    if frame.error is not None:
        message.error = f"{frame.error.code}: {frame.error.error}"
        message.refusal.CopyFrom(_notice(frame.error))
    info = frame.stream
    if info is not None:
        told = pb.StreamLimits(**{name: getattr(info.limits, name) for name in _LIMITS})
        message.stream.CopyFrom(
            pb.StreamInfo(
                stream_id=info.stream_id,
                resumed=info.resumed,
                held=map(_signal, info.held),
                lost=map(_signal, info.lost),
                limits=told,
            )
        )
    return message


_LIMITS: Final = frames.StreamLimits.__struct_fields__


def _pushed(frame: frames.PushFrame) -> pb.LifecycleStreamResponse:
    message = pb.LifecycleStreamResponse(
        push=frame.push,
        jobs=map(batch_job, frame.jobs),
        cancels=map(_signal, frame.cancels),
        warnings=map(_signal, frame.warnings),
        lost=map(_signal, frame.lost),
    )
    if frame.drain is not None:
        message.drain.CopyFrom(_notice(frame.drain))
    if frame.closing is not None:
        message.closing.CopyFrom(_notice(frame.closing))
        message.error = f"{frame.closing.code}: {frame.closing.error}"
    return message


def item_result(result: frames.Result) -> pb.ItemResult:
    """Write what came of one item."""
    message = pb.ItemResult(
        **{name: value for name in _RESULT_FIELDS if (value := getattr(result, name)) is not None}
    )
    if result.result is not None:
        message.result_json = _text(result.result)
    return message


def batch_job(job: frames.Job) -> pb.FetchBatchJob:
    """Write a job as one of several."""
    return pb.FetchBatchJob(**_job_fields(job))


def single_job(job: frames.Job) -> pb.FetchResponse:
    """Write a job that was asked for alone."""
    return pb.FetchResponse(found=True, **_job_fields(job))


def _job_fields(job: frames.Job) -> dict[str, Any]:
    found: dict[str, Any] = {
        "job_id": job.job_id,
        "queue": job.queue,
        "payload_json": _text(job.payload),
        "attempt": job.attempt,
        "max_retries": job.max_retries,
        "lease_duration": job.lease_duration,
        "lease_token": job.lease_token,
        "priority": job.priority,
        "created_at": job.created_at,
        "group": job.group or "",
        "scheduled_at": job.scheduled_at or "",
    }
    if job.tags:
        found["tags_json"] = encode(job.tags).decode()
    if job.checkpoint is not None:
        found["checkpoint_json"] = _text(job.checkpoint)
    if job.trace is not None:
        found["trace_json"] = _text(job.trace)
    return found


def _signal(signal: frames.Signal) -> pb.HeldJob:
    return pb.HeldJob(
        job_id=signal.job_id,
        lease_token=signal.lease_token,
        lease_expires_at=signal.lease_expires_at or "",
        reason=signal.reason or "",
    )


def _notice(problem: frames.Problem) -> pb.Notice:
    return pb.Notice(
        code=problem.code,
        error=problem.error,
        field=problem.field or "",
        hint=problem.hint or "",
        retry_after_ms=problem.retry_after_ms,
    )


def _text(raw: Raw) -> str:
    return bytes(raw).decode()


def all_methods() -> Iterable[Any]:
    """The methods of the service, as the protocol describes them."""
    return pb.DESCRIPTOR.services_by_name["WorkerService"].methods


def request_type(method: str) -> type[Message]:
    """The message a method takes."""
    kind = pb.DESCRIPTOR.services_by_name["WorkerService"].methods_by_name[method].input_type
    return getattr(pb, kind.name)
