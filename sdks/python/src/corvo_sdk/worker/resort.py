"""The last resort: give jobs back from a thread when the event loop does not answer, and end.

The loop still has connections to the server, over which a released job would come right back: a
parked fetch, or a stream with free slots. They are cut first, in a way the server notices at once.
"""

import os
import socket
import struct
from collections.abc import Sequence
from contextlib import suppress
from urllib.parse import urlsplit

from msgspec import Raw

from corvo_sdk.client import Client
from corvo_sdk.context import Context, Stop
from corvo_sdk.errors import CorvoError

EXIT_CODE = 70
_RESET = struct.pack("ii", 1, 0)  # closing resets the connection instead of ending it in order


def release_without_loop(client: Client, contexts: Sequence[Context]) -> None:
    """Cut every connection to the server, then release these jobs; what fails is left to leases."""
    sever({_port_of(url) for url in client.urls})
    for context in contexts:
        if context.stop_reason is Stop.LOST:
            continue
        checkpoint = context.pending_checkpoint
        with suppress(CorvoError):
            client.release(
                context.job_id,
                context.lease_token,
                checkpoint=None if checkpoint is None else Raw(checkpoint),
            )


def sever(ports: set[int]) -> None:
    """Reset every connection of this process to these ports."""
    hole = os.open(os.devnull, os.O_RDWR)
    for name in os.listdir("/dev/fd"):  # noqa: PTH208 - numbers, not paths
        descriptor = int(name)
        try:
            copy = socket.socket(fileno=os.dup(descriptor))
        except OSError:
            continue  # no socket
        with copy, suppress(OSError):
            peer = copy.getpeername()
            if isinstance(peer, tuple) and peer[1] in ports:
                copy.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
                # Safety: the number stays taken, so that nobody's new connection gets it and the
                # old owner can not write into that. The copy is the last to hold the connection.
                os.dup2(hole, descriptor)


def _port_of(url: str) -> int:
    parts = urlsplit(url)
    return parts.port or (443 if parts.scheme == "https" else 80)
