"""When a write is synced: the three fsync policies and their spelling on the command line."""

import re
from typing import Final

import msgspec

from corvo.errors import RequestError

INTERVAL_MS_MAX: Final = 60_000
_INTERVAL = re.compile(r"interval=(\d{1,8})(ms|s)")


class FsyncPolicy(msgspec.Struct, frozen=True):
    """How long an answer may run ahead of the disk.

    `always`    an answer waits for the sync that covers it;
    `interval`  an answer does not wait; the engine syncs every `interval_ms`, and a power cut may
                lose that much;
    `off`       nothing is synced but the start and the close; a power cut may lose what the kernel
                had not written, a killed process loses nothing.
    """

    mode: str
    interval_ms: int = 0

    @property
    def is_always(self) -> bool:
        """Whether an answer must wait for its sync."""
        return self.mode == "always"

    @staticmethod
    def always() -> "FsyncPolicy":
        """Every answer waits for the disk."""
        return FsyncPolicy("always")

    @staticmethod
    def interval(interval_ms: int) -> "FsyncPolicy":
        """Answers run ahead of the disk by at most about this long."""
        assert 0 < interval_ms <= INTERVAL_MS_MAX
        return FsyncPolicy("interval", interval_ms)

    @staticmethod
    def off() -> "FsyncPolicy":
        """Leave it to the kernel when bytes reach the disk."""
        return FsyncPolicy("off")

    @staticmethod
    def parse(text: str) -> "FsyncPolicy":
        """Read `always`, `interval=200ms`, `interval=1s` or `off`."""
        if text in ("always", "off"):
            return FsyncPolicy(text)
        match = _INTERVAL.fullmatch(text)
        if match is not None:
            interval_ms = int(match[1]) * (1000 if match[2] == "s" else 1)
            if 0 < interval_ms <= INTERVAL_MS_MAX:
                return FsyncPolicy("interval", interval_ms)
        raise RequestError(
            f"unknown fsync policy {text!r}",
            field="fsync",
            hint="use always, interval=200ms (at most 60s) or off",
        )

    def render(self) -> str:
        """Write the policy the way `parse` reads it."""
        return f"interval={self.interval_ms}ms" if self.mode == "interval" else self.mode
