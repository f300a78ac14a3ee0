"""The whole state, read once from the store: what the audit looks at."""

from collections.abc import Iterator

from corvo.keys import codec, space
from corvo.keys.order import successor
from corvo.machine.kv import Reader
from corvo.model import job as jb
from corvo.model.job import Job, Spec
from corvo.model.queue import Lane, QueueRecord


def pairs(store: Reader, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Walk all keys with a prefix, in slices."""
    start, until = prefix, successor(prefix)
    while found := store.scan(start, until, 2_000):
        yield from found
        start = found[-1][0] + b"\x00"


class Picture:
    """The whole state, read once."""

    def __init__(self, store: Reader) -> None:
        self.store = store
        self.jobs: dict[bytes, Job] = {}
        self.specs: dict[bytes, Spec] = {}
        for key, value in pairs(store, space.JOB):
            self.jobs[key[3:]] = codec.decode_job(value)
        for key, value in pairs(store, space.SPEC):
            self.specs[key[3:]] = codec.decode_spec(value)
        self.queues: dict[int, QueueRecord] = {}
        for _, value in pairs(store, space.QUEUE):
            record = codec.decode_queue(value)
            self.queues[record.id] = record
        self.lanes: dict[tuple[int, int], Lane] = {}
        for _, value in pairs(store, space.LANE):
            lane = codec.decode_lane(value)
            self.lanes[lane.space, lane.number] = lane

    def is_doomed(self, job: Job) -> bool:
        """A clear or delete has taken this job away and is still at work."""
        queue = self.queues[job.queue_id]
        clearable = job.state in (jb.PENDING, jb.SCHEDULED, jb.RETRYING)
        return queue.deleted or (clearable and space.space_of(job.at) != queue.space)

    def members(self) -> Iterator[Job]:
        """Jobs that exist for their users."""
        return (job for job in self.jobs.values() if not self.is_doomed(job))
