"""examples/checkpoint, as its page says."""

import re

from corvo_sdk import Client
from tests.examples.conftest import Start
from tests.support.worker import wait_until

FOUND = "2 3 5 7 13 17 19 31 61 89 107 127 521 607 1279 2203 2281"


def test_search_goes_on_from_its_checkpoint_after_its_worker_was_killed(
    walk: Start, client: Client
) -> None:
    """SIGKILL in the middle: the second attempt begins where the first had come to."""
    page = walk("checkpoint")
    begun = page.step()
    assert begun is not None
    job_id = begun.split()[0]

    def exponent() -> int:
        return int((client.get_job(job_id).checkpoint or {"exponent": 0})["exponent"])

    wait_until(lambda: exponent() > 700)
    page.step()
    assert client.get_job(job_id).state == "active"
    last = page.rest()[-1].split("\n")
    assert last == [f"{job_id} goes on", FOUND, "attempts: 2", ""]
    starts = [int(each) for each in re.findall(r"begins at exponent (\d+)", page.log())]
    assert starts[0] == 2
    assert starts[1] > 700
