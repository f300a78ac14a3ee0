"""Every field the server describes is a field of the SDK, in answers and in requests."""

import inspect
from collections.abc import Callable
from types import NoneType
from typing import Any, get_args, get_type_hints

import msgspec
import pytest

from corvo.api import wire
from corvo.api.filters import FilterFields
from corvo.api.openapi.catalog import CATALOG
from corvo_sdk import Client, types
from corvo_sdk.errors import CorvoError
from corvo_sdk.protocol.call import Call, Reply, Request
from corvo_sdk.types.jobs import HoldOptions
from tests.sdk.test_completeness import OWN, Recorder, operation, public, sample

# Declared by the server in order to be refused.
NOT_BUILT = {"agent", "routing", "result_schema"}


class Watched(Client):
    """A client that remembers its last call."""

    call: Call[Any] | None = None

    def _exchange(
        self, call: Call[Any], timeout_s: float | None, send: Callable[[str, Request], Reply]
    ) -> Reply:
        self.call = call
        return super()._exchange(call, timeout_s, send)


def _calls() -> dict[tuple[str, str], Call[Any]]:
    found: dict[tuple[str, str], Call[Any]] = {}
    for name, method in public(Client).items():
        if name in OWN:
            continue
        client = Watched("http://nowhere", transport=Recorder())
        try:
            result = getattr(client, name)(**sample(name, method))
            if inspect.isgenerator(result):
                next(result, None)
        except CorvoError:
            pass  # the answer is not that of this call
        assert client.call is not None, name
        found[operation(client.call.request)] = client.call
    return found


def _structs(kind: Any) -> list[type[msgspec.Struct]]:
    """The structs a type consists of, itself or as items."""
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return [kind]
    return [struct for part in get_args(kind) for struct in _structs(part)]


def _missing(theirs: Any, ours: Any, path: str) -> list[str]:
    """Fields of the server's shape that the SDK's type lacks, also inside."""
    their_structs, our_structs = _structs(theirs), _structs(ours)
    if not their_structs or not our_structs:
        return []  # plain values, or an object whose members are left open
    assert len(our_structs) == 1, path
    our_fields = get_type_hints(our_structs[0])
    found: list[str] = []
    for struct in their_structs:
        for name, kind in get_type_hints(struct, include_extras=False).items():
            where = f"{path}.{name}"
            if name not in our_fields:
                found.append(where)
            elif kind is not NoneType:
                found += _missing(kind, our_fields[name], where)
    return found


def test_every_field_of_an_answer_is_read() -> None:
    """What the server's description lists for an answer, the type of that answer has."""
    calls = _calls()
    found: list[str] = []
    compared = 0
    for op in CATALOG:
        call = calls.get((op.method, op.path))
        kind = getattr(call.read, "kind", None) if call is not None else None
        if kind is None:
            continue
        for shape in op.gives.values():
            compared += 1
            found += _missing(shape, kind, getattr(kind, "__name__", str(kind)))
    assert compared > 60
    assert found == []


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        (wire.EnqueueRequest, types.NewJob),
        (wire.JobFields, types.EnqueueOptions),
        (wire.HoldFields, HoldOptions),
        (wire.AckItem, types.Ack),
        (wire.HeartbeatItem, types.Heartbeat),
        (wire.SettingsRequest, types.QueueOptions),
        (wire.ScheduleRequest, types.ScheduleOptions),
        (wire.WebhookRequest, types.WebhookOptions),
        (wire.BulkRequest, types.BulkOptions),
        (FilterFields, types.SearchFilter),
    ],
)
def test_every_field_of_a_request_can_be_said(theirs: Any, ours: Any) -> None:
    """What the server takes, the SDK can send; and it sends nothing the server does not know."""
    positional = {"queue", "payload", "name", "cron", "url", "action", "job_ids", "filter"}
    spoken = positional | {"dry_run", "is_async", "agent_status"} | NOT_BUILT
    their_fields, our_fields = set(get_type_hints(theirs)), set(get_type_hints(ours))
    assert their_fields - our_fields - spoken == set()
    assert our_fields - their_fields == set()
