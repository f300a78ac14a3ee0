"""Bulk operations: one action on many jobs, written down before it begins, undone from tombstones.

    collecting ─▶ running ─▶ completed ─▶ undoing ─▶ undone
         │           │
         └───────────┴─▶ aborted, failed ─▶ undoing

The jobs of an operation are listed in chunks before the first of them is changed. Each step changes
some and moves the cursor in the same write, so that a restart goes on exactly behind the last job
that was changed, and no job is changed twice.
"""

from msgspec import Struct, field

from corvo.model.job import HOLD_NONE, TIER_NORMAL, Job, UniqueLock

RETRY, DELETE, CANCEL, MOVE, REQUEUE, PRIORITY, HOLD, APPROVE, REJECT, CLEAR = range(10)
ACTION_NAMES = (
    "retry",
    "delete",
    "cancel",
    "move",
    "requeue",
    "change_priority",
    "hold",
    "approve",
    "reject",
    "clear",
)
UNDOABLE = (DELETE, CANCEL, MOVE, PRIORITY, CLEAR)

COLLECTING, RUNNING, COMPLETED, ABORTED, FAILED, UNDOING, UNDONE = range(7)
STATUS_NAMES = ("collecting", "running", "completed", "aborted", "failed", "undoing", "undone")
UNFINISHED = (COLLECTING, RUNNING, UNDOING)

ID_BYTES = 16
ANY_STATE_BYTE = 0xFF  # a target whose state does not matter

# Why a job was left alone. Format: part of the operation's record and of the API.
NOT_FOUND = "not_found"
CHANGED = "changed"
INVALID_STATE = "invalid_state"
UNIQUE_CONFLICT = "unique_conflict"
EFFECTS_FIRED = "effects_fired"  # undo: its ending told others, who acted on it
DEPENDENCY_CHANGED = "dependency_changed"  # undo: a job it waited for did not complete
QUEUE_DELETED = "queue_deleted"  # undo: there is nowhere to put it


class BulkTask(Struct, frozen=True, array_like=True, gc=False):
    """What is done to each job; fields of other actions are at their defaults."""

    action: int
    queue: str = ""  # move: where to; clear: which
    reset_attempts: bool = False  # move
    keep_priority: bool = True  # move
    tier: int = TIER_NORMAL  # change_priority
    reason: str = ""  # hold, reject
    timeout_ms: int = 0  # hold
    timeout_action: int = HOLD_NONE  # hold
    by: str = ""  # approve, reject
    note: str = ""  # approve


class Bulk(Struct, array_like=True, gc=False):
    """One operation. Invariant: processed = affected + errors + all skipped (audit.bulks)."""

    id: bytes
    ns: int
    task: BulkTask
    status: int
    created_ms: int
    filter: bytes = b""  # JSON text; empty when the jobs were named
    cursor: bytes = b""  # collecting by filter: where the search goes on; its own format
    chunks: int = 0  # written so far
    chunk: int = 0  # cursor: the chunk being worked on
    offset: int = 0  # cursor: the next target in it
    total: int = 0
    processed: int = 0
    affected: int = 0
    errors: int = 0
    skipped: dict[str, int] = field(default_factory=dict[str, int])  # by reason
    error: str = ""  # why it failed
    updated_ms: int = 0
    finished_ms: int = 0
    undo_ms: int = 0  # length of the window in which it can be undone
    undo_until_ms: int = 0  # its end; 0: there is nothing to undo
    buried: int = 0  # tombstones written
    tombstones: int = 0  # tombstones that are left
    undone_ms: int = 0
    restored: int = 0
    kept: dict[str, int] = field(default_factory=dict[str, int])  # not restored, by reason


class BulkChunk(Struct, frozen=True, array_like=True, gc=False):
    """Targets: sixteen bytes of id each, and one byte of the state each was found in."""

    ids: bytes
    states: bytes


class Tombstone(Struct, frozen=True, array_like=True, gc=False):
    """How a job was before an action, as far as an undo needs it."""

    job: Job
    mark: tuple[int, ...]  # how the action left it; empty: it is gone. See undo.mark_of
    has_effects: bool = False  # its ending set others in motion
    waits_for: tuple[bytes, ...] = ()  # dependencies that were open
    lock: UniqueLock | None = None  # its unique lock, when it held one
    spec: bytes = b""  # deleted jobs: the encoded other half
    documents: tuple[tuple[bytes, bytes], ...] = ()  # deleted jobs: kind and bytes
    errors: tuple[tuple[int, bytes], ...] = ()  # deleted jobs: number and encoded record
