"""How long a caller is willing to wait, in steps the server is willing to wait."""

import time
from typing import Final

from corvo_sdk.duration import Duration, milliseconds

STEP_S: Final = 30.0  # one long poll; the server allows up to a minute


class Deadline:
    """A point in time by the clock that never goes back; None is never."""

    def __init__(self, timeout: Duration | None) -> None:
        self._timeout = timeout
        self._until_s: float | None = None
        if timeout is not None:
            self._until_s = time.monotonic() + milliseconds(timeout, "timeout") / 1_000

    def wait_s(self) -> float:
        """How long the next long poll may take."""
        if self._until_s is None:
            return STEP_S
        return max(0.0, min(STEP_S, self._until_s - time.monotonic()))

    def check(self, what: str) -> None:
        """Raise once the time is up."""
        if self._until_s is not None and time.monotonic() >= self._until_s:
            raise TimeoutError(f"{what} is not settled after {self._timeout}")
