"""A Corvo application with one task that does nothing. Run as a program, it enqueues."""

import sys

from corvo_sdk import Corvo

app = Corvo("noop")
BATCH = 500


@app.task(queue="noop")
async def noop(number: int) -> None:
    """Do nothing."""


if __name__ == "__main__":
    count = int(sys.argv[1])
    for start in range(0, count, BATCH):
        noop.enqueue_many([noop.call(number) for number in range(start, min(count, start + BATCH))])
