"""The table of key families. Together with `model` it is enough to draw the disk.

Format: one byte names the family, then fixed-width big-endian integers, then identifiers. A family
never changes its shape; a new shape is a new byte.

    key                                         value          what it is
    m                                           Meta           applied index, chain, counters
    q ns queue                                  QueueRecord    queue, settings, counters
    j ns id                                     Spec           a job as it was enqueued
    t ns id                                     Job            a job as it stands
    v ns id kind                                JSON text      a large document of a job
    f ns id number                              JobError       a failed attempt

  a live job is under exactly one of these, named by Job.at:
    R ns space lane rank id                     -              ready; tier first, then arrival
    W ns space id                               -              pending, waits for dependencies
    S due ns space id                           -              scheduled or retrying
    A expiry ns id                              -              active, by the end of its lease
    H ns queue id                               -              held
  and a settled one is listed in
    T ns queue index                            ids            jobs settled by that entry

  what a job may own besides:
    U ns queue key                              UniqueLock     unique lock
    I ns key                                    Remembered     answer to an idempotent call
    P ns parent child                           -              child waits for parent
    b ns batch                                  Batch          batch counters
    X due kind ns rest                          -              deadlines: see DEADLINE_*

  gating (only queues with groups or limit keys have these):
    L ns space lane                             Lane           jobs with equal group and gates
    l ns space digest                           lane           finds a lane by group and gates
    G ns space name                             Group          fair-queueing state
    M ns space group rank lane                  -              runnable lanes of a group
    N ns space tier start group                 -              groups with a runnable lane
    B gate 00 ns space rank lane                -              lanes waiting for a slot of a gate
    D ns space due lane                         -              lanes waiting for tokens
    K gate                                      Gate           slots used and tokens left
    Y ns name                                   Limit          a named limit

  schedules:
    c ns id                                     ScheduleSpec   as it was written
    s ns id                                     Schedule       how far it has come
    n ns name                                   id             finds it by name
    C due ns id                                 -              by when its next slot is fired

    O id                                        Operation      work done in steps
    Z ns id                                     Bulk           a bulk operation
    z bulk number                               BulkChunk      jobs it has yet to change
    u bulk ~number                              Tombstone      a job before; the last one first
    y ns space                                  bulk id        a cleared space that can be undone
    e index                                     EventBlock     events of one entry
    w ns 'h' webhook                            Webhook        an endpoint that wants events
    w ns 'p' webhook                            Progress       how far its delivery has come
    w ns 'd' webhook seq                        DeadLetter     an event it could not be sent
    w ns 'l' webhook slot                       Try            its delivery log, a ring

`space` is the storage number of a queue (QueueRecord.space): clearing a queue changes it.
`gate` is `ns 'q' queue key` for a queue's limit key, `ns 'n' name` for a named limit.
`rank` is tier << 60 | order, or in aging mode ready_ms + tier * aging_ms: smaller goes first.
"""

from corvo.keys.order import pack_u16, pack_u32, pack_u64, unpack_u32, unpack_u64
from corvo.model import limits

META = b"m"
QUEUE, SPEC, JOB, BLOB, ERROR = b"q", b"j", b"t", b"v", b"f"
READY, WAITING, DUE, ACTIVE, HELD, SETTLED = b"R", b"W", b"S", b"A", b"H", b"T"
UNIQUE, IDEMPOTENCY, DEPENDANT, BATCH, DEADLINE = b"U", b"I", b"P", b"b", b"X"
LANE, LANE_BY_IDENTITY, GROUP = b"L", b"l", b"G"
RUNNABLE_LANE, RUNNABLE_GROUP = b"M", b"N"
SLOT_WAITER, TOKEN_WAITER, GATE, LIMIT = b"B", b"D", b"K", b"Y"
OPERATION, EVENT = b"O", b"e"
SCHEDULE_SPEC, SCHEDULE, SCHEDULE_NAME, SCHEDULE_DUE = b"c", b"s", b"n", b"C"
BULK, BULK_CHUNK, TOMBSTONE, CLEARED_SPACE = b"Z", b"z", b"u", b"y"
WEBHOOK = b"w"

BLOB_CHECKPOINT, BLOB_RESULT, BLOB_PROGRESS, BLOB_USAGE = b"c", b"r", b"p", b"u"

DEADLINE_EXPIRE = 1  # rest: job id
DEADLINE_HOLD = 2  # rest: job id
DEADLINE_UNIQUE = 3  # rest: queue, key
DEADLINE_IDEMPOTENCY = 4  # rest: key
DEADLINE_GATE = 5  # rest: gate without its namespace
DEADLINE_BATCH = 6  # rest: batch id
DEADLINE_GROUP = 7  # rest: space, name
DEADLINE_BULK = 16  # rest: bulk id

NO_TIER_SHIFT = 60  # rank bits below the tier


def queue_key(ns: int, queue_id: int) -> bytes:
    """Key of a queue record."""
    return QUEUE + pack_u16(ns) + pack_u32(queue_id)


def spec_key(ns: int, job_id: bytes) -> bytes:
    """Key of a job's immutable half."""
    return SPEC + pack_u16(ns) + job_id


def job_key(ns: int, job_id: bytes) -> bytes:
    """Key of a job's mutable half."""
    return JOB + pack_u16(ns) + job_id


def blob_key(ns: int, job_id: bytes, kind: bytes) -> bytes:
    """Key of a large document of a job."""
    return BLOB + pack_u16(ns) + job_id + kind


def error_key(ns: int, job_id: bytes, number: int) -> bytes:
    """Key of a job's n-th error record."""
    return ERROR + pack_u16(ns) + job_id + pack_u32(number)


def ready_prefix(ns: int, space: int, lane: int) -> bytes:
    """Prefix of the ready jobs of one lane."""
    return READY + pack_u16(ns) + pack_u32(space) + pack_u32(lane)


def ready_space_prefix(ns: int, space: int) -> bytes:
    """Prefix of all ready jobs of a space."""
    return READY + pack_u16(ns) + pack_u32(space)


def waiting_key(ns: int, space: int, job_id: bytes) -> bytes:
    """Key of a job that waits for dependencies."""
    return WAITING + pack_u16(ns) + pack_u32(space) + job_id


def due_key(due_ms: int, ns: int, space: int, job_id: bytes) -> bytes:
    """Key of a job that becomes pending at a time."""
    return DUE + pack_u64(due_ms) + pack_u16(ns) + pack_u32(space) + job_id


def active_key(expiry_ms: int, ns: int, job_id: bytes) -> bytes:
    """Key of an active job, by the end of its lease."""
    return ACTIVE + pack_u64(expiry_ms) + pack_u16(ns) + job_id


def held_key(ns: int, queue_id: int, job_id: bytes) -> bytes:
    """Key of a held job."""
    return HELD + pack_u16(ns) + pack_u32(queue_id) + job_id


def settled_prefix(ns: int, queue_id: int) -> bytes:
    """Prefix of a queue's retention blocks."""
    return SETTLED + pack_u16(ns) + pack_u32(queue_id)


def unique_key(ns: int, queue_id: int, key: str) -> bytes:
    """Key of a unique lock."""
    return UNIQUE + pack_u16(ns) + pack_u32(queue_id) + key.encode()


def idempotency_key(ns: int, key: str) -> bytes:
    """Key of a remembered answer."""
    return IDEMPOTENCY + pack_u16(ns) + key.encode()


def dependant_prefix(ns: int, parent: bytes) -> bytes:
    """Prefix of the jobs that wait for a parent."""
    return DEPENDANT + pack_u16(ns) + parent


def batch_key(ns: int, batch_id: bytes) -> bytes:
    """Key of a batch."""
    return BATCH + pack_u16(ns) + batch_id


def deadline_key(due_ms: int, kind: int, ns: int, rest: bytes) -> bytes:
    """Key of a deadline."""
    return DEADLINE + pack_u64(due_ms) + bytes((kind,)) + pack_u16(ns) + rest


def lane_key(ns: int, space: int, lane: int) -> bytes:
    """Key of a lane record."""
    return LANE + pack_u16(ns) + pack_u32(space) + pack_u32(lane)


def lane_identity_key(ns: int, space: int, digest: bytes) -> bytes:
    """Key that finds a lane by the digest of its group and gates."""
    return LANE_BY_IDENTITY + pack_u16(ns) + pack_u32(space) + digest


def group_key(ns: int, space: int, name: str) -> bytes:
    """Key of a group."""
    return GROUP + pack_u16(ns) + pack_u32(space) + name.encode()


def runnable_lane_prefix(ns: int, space: int, group: int) -> bytes:
    """Prefix of the runnable lanes of a group."""
    return RUNNABLE_LANE + pack_u16(ns) + pack_u32(space) + pack_u32(group)


def runnable_group_prefix(ns: int, space: int) -> bytes:
    """Prefix of the groups with a runnable lane."""
    return RUNNABLE_GROUP + pack_u16(ns) + pack_u32(space)


def queue_gate(ns: int, queue_id: int, key: str) -> bytes:
    """Name the gate of a limit key within a queue."""
    return pack_u16(ns) + b"q" + pack_u32(queue_id) + key.encode()


def limit_gate(ns: int, name: str) -> bytes:
    """Name the gate of a named limit."""
    return pack_u16(ns) + b"n" + name.encode()


def slot_waiter_prefix(gate: bytes) -> bytes:
    """Prefix of the lanes that wait for a slot of a gate.

    Safety: the terminator cannot occur inside the name part of a gate, and the binary part before
    it has a fixed width, so no gate's prefix is a prefix of another's.
    """
    return SLOT_WAITER + gate + b"\x00"


def token_waiter_prefix(ns: int, space: int) -> bytes:
    """Prefix of the lanes of a space that wait for tokens."""
    return TOKEN_WAITER + pack_u16(ns) + pack_u32(space)


def schedule_spec_key(ns: int, schedule_id: bytes) -> bytes:
    """Key of what a schedule asks for."""
    return SCHEDULE_SPEC + pack_u16(ns) + schedule_id


def schedule_key(ns: int, schedule_id: bytes) -> bytes:
    """Key of how far a schedule has come."""
    return SCHEDULE + pack_u16(ns) + schedule_id


def schedule_name_key(ns: int, name: str) -> bytes:
    """Key that finds a schedule by its name."""
    return SCHEDULE_NAME + pack_u16(ns) + name.encode()


def schedule_due_key(due_ms: int, ns: int, schedule_id: bytes) -> bytes:
    """Key of a schedule by when its next slot is fired."""
    return SCHEDULE_DUE + pack_u64(due_ms) + pack_u16(ns) + schedule_id


def event_key(index: int) -> bytes:
    """Key of the events of an entry."""
    return EVENT + pack_u64(index)


def bulk_key(ns: int, bulk_id: bytes) -> bytes:
    """Key of a bulk operation."""
    return BULK + pack_u16(ns) + bulk_id


def bulk_chunk_key(bulk_id: bytes, number: int) -> bytes:
    """Key of the n-th list of targets of a bulk operation."""
    return BULK_CHUNK + bulk_id + pack_u32(number)


def tombstone_key(bulk_id: bytes, number: int) -> bytes:
    """Key of the n-th tombstone of an operation; the complement makes a scan start at the last."""
    return TOMBSTONE + bulk_id + pack_u32(0xFFFFFFFF - number)


def cleared_space_key(ns: int, space: int) -> bytes:
    """Key that finds the undoable operation which cleared a space."""
    return CLEARED_SPACE + pack_u16(ns) + pack_u32(space)


def webhook_prefix(ns: int) -> bytes:
    """Prefix of the webhooks of a namespace."""
    return WEBHOOK + pack_u16(ns) + b"h"


def webhook_key(ns: int, webhook_id: bytes) -> bytes:
    """Key of a webhook."""
    return WEBHOOK + pack_u16(ns) + b"h" + webhook_id


def webhook_progress_key(ns: int, webhook_id: bytes) -> bytes:
    """Key of what is known about the delivery of a webhook."""
    return WEBHOOK + pack_u16(ns) + b"p" + webhook_id


def webhook_try_key(ns: int, webhook_id: bytes, number: int) -> bytes:
    """Key of the n-th line of a delivery log, which takes the place of an older one."""
    slot = number % limits.WEBHOOK_TRIES_KEPT
    return WEBHOOK + pack_u16(ns) + b"l" + webhook_id + pack_u16(slot)


def dead_letter_prefix(ns: int, webhook_id: bytes) -> bytes:
    """Prefix of the dead letters of a webhook, by the sequence number of their events."""
    return WEBHOOK + pack_u16(ns) + b"d" + webhook_id


def is_webhook(key: bytes) -> bool:
    """Whether a key of the family `w` is that of a webhook itself."""
    return key[3:4] == b"h"


def job_of(key: bytes) -> bytes:
    """Return the job id at the end of a location key (R, W, S, A, H)."""
    return key[-16:]


def lane_of(key: bytes) -> int:
    """Return the lane number at the end of a lane key (M, B, D)."""
    return unpack_u32(key, len(key) - 4)[0]


def due_of(key: bytes) -> int:
    """Return the time in a key that starts with one (S, A, X, C)."""
    return unpack_u64(key, 1)[0]


def space_of(key: bytes) -> int:
    """Return the space number in a key of a job that a clear would remove (R, W, S)."""
    return unpack_u32(key, 11 if key[:1] == DUE else 3)[0]
