"""A fetch over several queues claims what is at the head when it claims, not when it looked."""

from corvo.model import command as c
from corvo.model import job as j
from corvo.model import outcome as o
from tests.factories import make_chain, make_enqueue, make_fetch
from tests.model.harness import Pair


def test_a_handler_that_an_expiry_sets_off_while_looking_is_not_overlooked():
    """Looking at the second queue turns the first into one with lanes; its count stays right."""
    pair = Pair()
    handler = j.Step("mail", group="red")
    chain = make_chain(1, j.Step("bill"), on_failure=handler)
    doomed = make_enqueue(2, "bill", chain=chain, expire_after_ms=1)
    pair.step([make_enqueue(1, "mail"), doomed])
    fetched = pair.step([make_fetch("mail", "bill")], 10)[0]
    assert isinstance(fetched, o.Fetched)
    assert len(fetched.claims) == 1
    (rest,) = pair.step([make_fetch("mail", "bill", count=5)])
    assert isinstance(rest, o.Fetched)
    assert len(rest.claims) == 1
    pair.step([c.PromoteJobs()])
