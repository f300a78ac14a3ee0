"""What can be asked of bulk operations. Part of the closed set in `command`."""

from msgspec import Struct

from corvo.model import limits
from corvo.model.bulk import BulkTask


class StartBulk(Struct, frozen=True, array_like=True, gc=False, tag=33):
    """Open a bulk operation; with all of its jobs at once, or with the first of them.

    Targets of 33 to 34 are two parallel strings: sixteen bytes of id, one byte of expected state.
    """

    ns: int
    id: bytes
    task: BulkTask
    ids: bytes = b""
    states: bytes = b""
    is_sealed: bool = False  # these are all: begin
    filter: bytes = b""  # JSON text; kept so that a restart can go on finding jobs
    unknown: int = 0  # names in the request that cannot be a job's
    undo_ms: int = 0  # how long it can be undone; 0: not at all
    cursor: bytes = b""  # by filter: where finding jobs goes on


class FillBulk(Struct, frozen=True, array_like=True, gc=False, tag=34):
    """Add a chunk of jobs to a bulk operation that has not begun; the last chunk seals it."""

    ns: int
    id: bytes
    number: int  # of the chunk: one that is not the next is ignored
    ids: bytes = b""
    states: bytes = b""
    is_sealed: bool = False
    cursor: bytes = b""  # by filter: where finding jobs goes on


class StepBulk(Struct, frozen=True, array_like=True, gc=False, tag=35):
    """Go on with a bulk operation or with undoing it: one bounded step from its cursor."""

    ns: int
    id: bytes
    limit: int = limits.BULK_STEP_JOBS
    is_skipping: bool = False  # the first job made the machine fail: count it as an error


class AbortBulk(Struct, frozen=True, array_like=True, gc=False, tag=36):
    """Stop a bulk operation where it stands; what is done stays done."""

    ns: int
    id: bytes
    error: str = ""  # why the server gave up; empty: somebody asked for it


class UndoBulk(Struct, frozen=True, array_like=True, gc=False, tag=37):
    """Begin to take back a finished bulk operation or the clearing of a queue."""

    ns: int
    id: bytes
