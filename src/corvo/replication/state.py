"""What a walk over the records of a log learns: hard state, range of indexes, replaced suffixes.

The bytes of a record are checked before it comes here; this module checks what it means. Indexes
have no gaps, terms never go back along the log, a hard state never goes back in term, and only an
uncommitted suffix may be replaced.
"""

from collections import deque
from typing import Final

from corvo.replication.record import Kind, SegmentHeader, decode_hard_state, decode_position
from corvo.replication.segment import Entry

TAIL_COUNT: Final = 512


class LogState:
    """Everything the walk learns: the state of the log after the last whole batch."""

    def __init__(self, header: SegmentHeader) -> None:
        self.sequence = header.first_record
        self.chain = header.previous_chain
        self.hard_state = header.hard_state
        self.first_index = header.first_index
        self.last_index = header.first_index - 1
        self.last_term = header.previous_term
        self.snapshot_index = 0
        self.synced_record = header.synced_record
        # Where a later record replaced a suffix: (sequence of the replacing record, its index).
        self.overwrites: list[tuple[int, int]] = []
        self.tail: deque[tuple[int, int]] = deque(maxlen=TAIL_COUNT)
        self.marked_at = 0

    def absorb(self, entry: Entry) -> str | None:
        """Take in one record whose bytes hold; return what is wrong with its meaning, if it is."""
        envelope, payload = entry.envelope, entry.payload
        self.synced_record = max(self.synced_record, envelope.synced_record)
        match envelope.kind:
            case Kind.NORMAL | Kind.CONF:
                return self._absorb_entry(entry)
            case Kind.HARDSTATE:
                state = decode_hard_state(payload)
                if state is None or state.term < self.hard_state.term:
                    return "a hard state goes back in term or cannot be read"
                self.hard_state = state
            case Kind.SNAPSHOT:
                position = decode_position(payload)
                if position is None:
                    return "a snapshot record cannot be read"
                self._absorb_snapshot(*position)
            case Kind.SYNCED:
                self.marked_at = envelope.sequence
            case _:
                return f"record kind {envelope.kind} is not known"
        return None

    def _absorb_entry(self, entry: Entry) -> str | None:
        envelope = entry.envelope
        index = envelope.index
        if index > self.last_index + 1:
            return f"entry {index} follows entry {self.last_index}: entries are missing"
        if index <= self.last_index:
            # Raft replaces an uncommitted suffix; a committed entry is never replaced.
            floor = max(self.hard_state.commit, self.snapshot_index, self.first_index - 1)
            if index <= floor:
                return f"entry {index} would replace a committed entry"
            self.overwrites.append((envelope.sequence, index))
            while self.tail and self.tail[-1][0] >= index:
                self.tail.pop()
        elif envelope.term < self.last_term:
            return f"entry {index} goes back from term {self.last_term} to {envelope.term}"
        self.last_index = index
        self.last_term = envelope.term
        self.tail.append((index, envelope.payload_crc))
        return None

    def _absorb_snapshot(self, index: int, term: int) -> None:
        self.snapshot_index = max(self.snapshot_index, index)
        if index > self.last_index:
            self.first_index = index + 1
            self.last_index = index
            self.last_term = term
            self.tail.clear()
