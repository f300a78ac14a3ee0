"""What a worker and its processes say to each other, one msgpack message at a time.

Format: both sides are always of the same version, so nothing here needs to be compatible.
"""

from collections.abc import Callable

import msgspec
from msgspec import Struct

from corvo_sdk.context import Stop
from corvo_sdk.worker.verdict import Verdict


class Work(Struct, frozen=True, tag=True):
    """Run this job of the task with this name."""

    module: str
    attribute: str
    job: bytes  # JSON, as it was fetched


class StopWork(Struct, frozen=True, tag=True):
    """Ask the handler to stop."""

    reason: Stop


class Saved(Struct, frozen=True, tag=True):
    """The checkpoint arrived, or why not."""

    error: str | None = None


class Say(Struct, frozen=True, tag=True):
    """What the handler says: one of checkpoint, progress, usage."""

    kind: str
    document: bytes


class Done(Struct, frozen=True, tag=True):
    """The job ended."""

    verdict: Verdict


ToChild = Work | StopWork | Saved
FromChild = Say | Done

encode: Callable[[ToChild | FromChild], bytes] = msgspec.msgpack.Encoder().encode
decode_to_child: Callable[[bytes], ToChild] = msgspec.msgpack.Decoder(ToChild).decode
decode_from_child: Callable[[bytes], FromChild] = msgspec.msgpack.Decoder(FromChild).decode
