"""A Dramatiq application with one actor that does nothing. Run as a program, it enqueues."""

import os
import sys

import dramatiq
from dramatiq.brokers.redis import RedisBroker

dramatiq.set_broker(RedisBroker(url=os.environ["PEERS_REDIS"]))


@dramatiq.actor
def noop(number: int) -> None:
    """Do nothing."""


if __name__ == "__main__":
    for number in range(int(sys.argv[1])):
        noop.send(number)
