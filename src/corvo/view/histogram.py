"""Histograms of durations, small enough for one in every minute of every queue.

Format: one unsigned 32-bit little-endian count for each bound, and one for what is beyond the last.
"""

import struct
from bisect import bisect_left
from typing import Final

# Upper bounds in milliseconds, inclusive.
BOUNDS_MS: Final = (
    1, 2, 5, 10, 20, 50, 100, 200, 500,
    1_000, 2_000, 5_000, 10_000, 30_000, 60_000,
    300_000, 900_000, 3_600_000, 14_400_000, 86_400_000,
)  # fmt: skip
BUCKETS: Final = len(BOUNDS_MS) + 1
_FORMAT = struct.Struct(f"<{BUCKETS}I")
_COUNT_MAX = 2**32 - 1


def bucket_of(duration_ms: int) -> int:
    """Name the bucket of a duration."""
    return bisect_left(BOUNDS_MS, duration_ms)


def pack(counts: list[int]) -> bytes:
    """Write counts as they are stored."""
    return _FORMAT.pack(*(min(count, _COUNT_MAX) for count in counts))


def unpack(stored: bytes) -> list[int]:
    """Read counts back."""
    return list(_FORMAT.unpack(stored))
