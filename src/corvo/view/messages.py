"""What the two processes say to each other. Both are of one version: this is no stored format.

On the feed socket the view asks and the core answers:

    Hello ─▶ Welcome         is this cursor a place in your history?
    Pull  ─▶ Copies* Slice   what happened after an index, with the records as they stand now
    Want  ─▶ Copies* Told    records by name
    Snapshot ─▶ Copied       write a copy of the store, to build anew from
    Progress                 how far building anew is

On the query socket the core asks and the view answers, in any order:

    Query ─▶ Answer
"""

from hashlib import blake2b

from msgspec import Struct
from msgspec.msgpack import Decoder, Encoder

from corvo.model.copied import Copies
from corvo.model.event import EventBlock


class Hello(Struct, array_like=True, tag="hello"):
    """Where the view stands: everything that names a place in a history."""

    history: bytes
    position: int
    chain: bytes
    block_position: int
    block_digest: bytes


class Welcome(Struct, array_like=True, tag="welcome"):
    """Whether the feed can be taken up from there."""

    is_match: bool
    reason: str
    history: bytes
    position: int  # the last applied entry of the server


class Pull(Struct, array_like=True, tag="pull"):
    """Ask for what follows; also says that everything up to `position` is committed."""

    position: int
    events: int = 0  # events applied since the process began
    block_position: int = 0  # of the last block of events applied


class Progress(Struct, array_like=True, tag="progress"):
    """How far a rebuild is; not answered."""

    reason: str
    step: str  # snapshot, jobs, events, indexes, done
    done: int = 0
    rebuilds: int = 0  # since the process began


class Slice(Struct, array_like=True, tag="slice"):
    """Events, and how far the view is once it has applied them and the copies sent before."""

    blocks: list[tuple[int, EventBlock]]
    position: int
    history: bytes
    chain: bytes  # at `position`; empty when the server is further
    floor_seq: int  # first event that is kept
    now_ms: int
    must_rebuild: bool = False
    reason: str = ""


class Want(Struct, array_like=True, tag="want"):
    """Ask for records by name."""

    jobs: list[tuple[int, bytes]]
    batches: list[tuple[int, bytes]]


class Told(Struct, array_like=True, tag="told"):
    """The copies asked for are complete; they are as of this index."""

    position: int


class Snapshot(Struct, array_like=True, tag="snapshot"):
    """Ask for a copy of the store, into a directory that does not exist."""

    directory: str


class Copied(Struct, array_like=True, tag="copied"):
    """The copy is there, or why not."""

    error: str = ""


class Query(Struct, array_like=True, tag="query"):
    """Ask a query by name; the parameters are its own."""

    number: int
    name: str
    parameters: bytes  # MessagePack
    budget_ms: int


class Answer(Struct, array_like=True, tag="answer"):
    """JSON bytes, or the error to give the client."""

    number: int
    body: bytes
    code: str = ""
    message: str = ""
    field: str = ""
    hint: str = ""


ToCore = Hello | Pull | Want | Snapshot | Progress | Answer
ToView = Welcome | Slice | Told | Copied | Copies | Query

encode = Encoder().encode


def digest_of(position: int, block: EventBlock) -> bytes:
    """Name a place in a history: no two histories have the same block at the same index."""
    return blake2b(encode((position, block)), digest_size=16).digest()


decode_to_core = Decoder(ToCore).decode
decode_to_view = Decoder(ToView).decode
