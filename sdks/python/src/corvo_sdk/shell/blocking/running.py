"""What the methods need of the client they belong to."""

from typing import TypeVar

from corvo_sdk.protocol.call import Call

T = TypeVar("T")


class Runner:
    """Runs calls; implemented by the client."""

    def _run(self, call: Call[T]) -> T:
        raise NotImplementedError
