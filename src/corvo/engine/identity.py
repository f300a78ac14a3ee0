"""The source of identifiers: unique without coordination, rising within a process.

The layout is drawn in `model.ids`. The 68-bit tail starts at a random number each millisecond and
counts from there, so that ids of one process sort by creation and two processes never agree by
accident.
"""

import secrets
from collections.abc import Callable

from corvo.model.ids import GROUP_BITS, TAIL_BITS
from corvo.runtime.clock import Clock

# One bit below the width of the tail: 2**67 identifiers fit behind any random start, so counting
# within a millisecond never spills into the group.
_RANDOM_BITS = TAIL_BITS - 1
_TIME_SHIFT = GROUP_BITS + TAIL_BITS


class IdSource:
    """Gives out identifiers of one group (shard)."""

    __slots__ = ("_clock", "_group", "_latest_ms", "_random_bits", "_value")

    def __init__(
        self,
        clock: Clock,
        *,
        group: int = 0,
        random_bits: Callable[[int], int] = secrets.randbits,
    ) -> None:
        assert 0 <= group < 1 << GROUP_BITS
        self._clock = clock
        self._group = group
        self._random_bits = random_bits
        self._latest_ms = -1
        self._value = 0

    def new_id(self) -> bytes:
        """Return an identifier greater than every one before it."""
        now_ms = self._clock.now_ms()
        if now_ms > self._latest_ms:
            self._latest_ms = now_ms
            tail = self._random_bits(_RANDOM_BITS)
            self._value = now_ms << _TIME_SHIFT | self._group << TAIL_BITS | tail
        else:
            self._value += 1
        return self._value.to_bytes(16, "big")
