"""Every number that bounds what one client can make the transport hold or wait for."""

import msgspec

KIB = 1024
MIB = 1024 * KIB


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Bounds of one connection; the defaults suit a server on an open network."""

    # Request line and headers of one request; beyond: 431.
    head_bytes_max: int = 32 * KIB
    # Body of a request whose route names no limit of its own; beyond: 413.
    body_bytes_max: int = 4 * MIB
    # Unanswered requests at which reading pauses, unless one of them is parked.
    pipelined_pause_count: int = 256
    # Unanswered requests beyond which the next is refused with 503 and the connection ends. One
    # read of 256 KiB holds fewer small requests than this, so only a client that ignores its
    # answers gets there.
    pipelined_count_max: int = 4096
    # Bodies and out-of-order answers held for one connection; beyond: 503 and the end.
    held_bytes_max: int = 32 * MIB
    # Unsent answers at which reading pauses, and beyond which the client is cut off.
    write_pause_bytes: int = 256 * KIB
    write_bytes_max: int = 64 * MIB
    # What a refused client may still send before it is cut off.
    discarded_bytes_max: int = 64 * MIB

    keep_alive_ms: int = 75_000
    head_ms: int = 10_000
    # A body may take this long plus the time its bytes take at the slowest rate accepted.
    body_ms: int = 30_000
    body_bytes_per_second_min: int = 8 * KIB
    # A client that reads nothing of a full write buffer for this long is cut off.
    write_ms: int = 30_000
    # How long a refused client may keep its side open, so that it can read the refusal.
    linger_ms: int = 3_000
    # How long the ASGI application may go on answering a client that closed its sending side.
    half_close_ms: int = 2_000
    # One timer for all connections; every time-out above is rounded up to it.
    sweep_ms: int = 1_000

    def ticks(self, duration_ms: int) -> int:
        """Return the number of sweeps that certainly cover `duration_ms`."""
        return -(-duration_ms // self.sweep_ms)
