"""One request, the answer to it, and how the one is understood by the other."""

from collections.abc import Callable
from enum import Enum
from typing import Any, Final, Generic, TypeVar

import msgspec
from msgspec import Struct

from corvo_sdk.errors import ProtocolError

T = TypeVar("T")

_BODY_SHOWN_BYTES: Final = 80


class Repeat(Enum):
    """Whether a call may be sent again when nobody knows if the server acted on it."""

    # A read, or a write that changes nothing when it comes twice.
    ALWAYS = "always"
    # Sent again only when the server certainly did not act: it refused, or was never reached.
    UNLESS_SENT = "unless_sent"


class Request(Struct, frozen=True):
    """What is sent; the address of the server is chosen elsewhere."""

    method: str
    path: str  # from the root of the server, with the query
    headers: dict[str, str] = {}
    body: bytes | None = None
    timeout_s: float = 10.0  # for one try, including the time a long poll may wait


class Reply(Struct, frozen=True):
    """What came back, whatever its status."""

    status: int
    headers: dict[str, str]  # names in lower case
    body: bytes


class Call(Struct, Generic[T], frozen=True):
    """A request, how its answer is read, and whether it may be repeated."""

    request: Request
    read: Callable[[Reply], T]
    repeat: Repeat = Repeat.UNLESS_SENT
    wait_s: float = 0.0  # how long the server may let the answer wait; added to every time-out
    accepts: frozenset[int] = frozenset()  # statuses from 400 on that are answers, not refusals

    @property
    def is_repeatable(self) -> bool:
        """Whether sending it twice does no harm."""
        return self.repeat is Repeat.ALWAYS


class Reader(Generic[T]):
    """Reads a JSON body into a type; fields it does not know are left out."""

    def __init__(self, kind: type[T]) -> None:
        self.kind: Any = kind
        # Cost: made when first needed; there are fifty, and a program uses few of them.
        self._decode: Callable[[bytes], T] | None = None

    def __call__(self, reply: Reply) -> T:
        if self._decode is None:
            self._decode = msgspec.json.Decoder(self.kind).decode
        try:
            return self._decode(reply.body)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            shown = reply.body[:_BODY_SHOWN_BYTES].decode("utf-8", "replace")
            raise ProtocolError(
                f"the answer can not be read: {error}: {shown!r}",
                status=reply.status,
                hint="Is this the address of a Corvo server, and of a version this SDK knows?",
            ) from error
