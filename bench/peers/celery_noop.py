"""A Celery application with one task that does nothing. Run as a program, it enqueues."""

import os
import sys

from celery import Celery

app = Celery("noop", broker=os.environ["PEERS_REDIS"])
app.conf.update(
    task_ignore_result=True,
    worker_prefetch_multiplier=64,  # its default of 4 is slower
    worker_send_task_events=False,
    broker_connection_retry_on_startup=True,
)


@app.task(name="noop", acks_late=True)
def noop(number: int) -> None:
    """Do nothing; acknowledged after it is done, as Corvo does."""


if __name__ == "__main__":
    with app.producer_pool.acquire() as producer:
        for number in range(int(sys.argv[1])):
            noop.apply_async((number,), producer=producer)
