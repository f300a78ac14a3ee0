"""Value codecs: msgpack arrays of the structs in `model`.

Format: FORMAT_VERSION is written into the meta record. Structs grow only at their end and only with
defaults, so old bytes decode under new code. To change more than that: raise FORMAT_VERSION, add a
new family or struct, convert on open in bounded steps, and keep the old decoder until no data
directory of the old version can be opened any more.
"""

from msgspec import Struct
from msgspec.msgpack import Decoder, Encoder

from corvo.model.bulk import Bulk, BulkChunk, Tombstone
from corvo.model.command import Entry
from corvo.model.event import EventBlock
from corvo.model.job import Batch, Job, JobError, Remembered, Spec, UniqueLock
from corvo.model.outcome import BatchEnqueued, Duplicate, Enqueued
from corvo.model.queue import Gate, Group, Lane, Limit, Operation, QueueRecord
from corvo.model.schedule import Schedule, ScheduleSpec
from corvo.model.webhook import DeadLetter, Progress, Try, Webhook

FORMAT_VERSION = 1


class Meta(Struct, array_like=True, gc=False):
    """Where the machine stands; written in the same batch as the effects of each entry."""

    format: int
    index: int  # last applied entry
    now_ms: int  # its time
    seq: int  # last event sequence number
    chain: bytes  # hash over all effects so far
    version: int  # machine version in force
    numbers: int  # last queue or space number given out
    event_floor: int  # first index whose events are kept
    event_floor_seq: int  # its first sequence number
    epoch: bytes = bytes(16)  # name of this history; zeros: never named


class SettledBlock(Struct, array_like=True, gc=False):
    """Jobs of one queue settled by one entry."""

    at_ms: int
    ids: list[bytes]


encode = Encoder().encode

decode_entry = Decoder(Entry).decode
decode_meta = Decoder(Meta).decode
decode_spec = Decoder(Spec).decode
decode_job = Decoder(Job).decode
decode_error = Decoder(JobError).decode
decode_queue = Decoder(QueueRecord).decode
decode_settled = Decoder(SettledBlock).decode
decode_unique = Decoder(UniqueLock).decode
decode_remembered = Decoder(Remembered).decode
decode_batch = Decoder(Batch).decode
decode_lane = Decoder(Lane).decode
decode_group = Decoder(Group).decode
decode_gate = Decoder(Gate).decode
decode_limit = Decoder(Limit).decode
decode_operation = Decoder(Operation).decode
decode_schedule_spec = Decoder(ScheduleSpec).decode
decode_schedule = Decoder(Schedule).decode
decode_bulk = Decoder(Bulk).decode
decode_bulk_chunk = Decoder(BulkChunk).decode
decode_tombstone = Decoder(Tombstone).decode
decode_events = Decoder(EventBlock).decode
decode_webhook = Decoder(Webhook).decode
decode_progress = Decoder(Progress).decode
decode_dead_letter = Decoder(DeadLetter).decode
decode_try = Decoder(Try).decode
decode_answer = Decoder(Enqueued | Duplicate | BatchEnqueued).decode


def encode_entry(entry: Entry) -> bytes:
    """Encode an entry as the log keeps it."""
    return encode(entry)
