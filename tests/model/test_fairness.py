"""Groups of a queue share it by weight.

The oracle allows the head of any group; which one is next is judged here, by the bound of
start-time fair queueing: over any stretch in which two groups both have work, what they got,
divided by their weights, differs by at most one job of each.
"""

from hypothesis import given, settings
from hypothesis import strategies as st

from corvo.model.outcome import Fetched
from tests.factories import make_configure, make_enqueue, make_fetch
from tests.model.harness import Pair
from tests.model.profiles import IS_LONG, SETTINGS

WEIGHTS = st.dictionaries(st.sampled_from(("a", "b", "c")), st.integers(1, 5), min_size=2)
UNIT = 1 << 16  # virtual time of one unit of cost at weight one


def claims_in_order(pair: Pair, count: int, size: int) -> list[tuple[str, int]]:
    """Fetch `count` jobs, `size` at a time; return group and cost of each."""
    found: list[tuple[str, int]] = []
    while len(found) < count:
        (outcome,) = pair.step([make_fetch(count=min(size, count - len(found)))])
        assert isinstance(outcome, Fetched)
        assert outcome.claims
        found += [(claim.spec.group, claim.spec.cost) for claim in outcome.claims]
    return found


@given(WEIGHTS, st.lists(st.integers(1, 4), min_size=40, max_size=40), st.integers(1, 5))
@settings(SETTINGS, max_examples=5_000 if IS_LONG else 30)
def test_backlogged_groups_get_their_share_over_any_stretch(
    weights: dict[str, int], costs: list[int], size: int
):
    """No group gets ahead of another by more than one job of each, at any time."""
    pair = Pair()
    pair.step([make_configure("mail", weights=weights)])
    groups, number = sorted(weights), 0
    for group in groups:  # one group after the other: the order of arrival must not matter
        specs = [make_enqueue(number + n, group=group, cost=cost) for n, cost in enumerate(costs)]
        pair.step(list(specs))
        number += len(costs)
    # The first claims only: every group must still have work at the end of the stretch.
    served = claims_in_order(pair, len(costs), size)
    most = max(costs)
    for first in range(0, len(served), 7):
        got = dict.fromkeys(groups, 0)
        for group, cost in served[first:]:
            got[group] += cost * UNIT // weights[group]
            for one in groups:
                for two in groups:
                    bound = most * UNIT // weights[one] + most * UNIT // weights[two]
                    assert abs(got[one] - got[two]) <= bound + len(served)


def test_a_group_that_was_idle_gets_no_credit_for_it():
    """Fairness starts when work arrives: a late group shares from then on and does not catch up."""
    pair = Pair()
    pair.step([make_enqueue(n, group="early") for n in range(60)])
    claims_in_order(pair, 20, 1)
    pair.step([make_enqueue(100 + n, group="late") for n in range(20)])
    served = [group for group, _ in claims_in_order(pair, 20, 1)]
    assert 9 <= served.count("late") <= 11


def test_jobs_without_a_group_are_a_group_too():
    """A queue where only some jobs name a group starves neither kind."""
    pair = Pair()
    pair.step([make_enqueue(n, group="a") for n in range(20)])
    pair.step([make_enqueue(100 + n) for n in range(20)])
    served = [group for group, _ in claims_in_order(pair, 20, 2)]
    assert 9 <= served.count("") <= 11


def test_tiers_stand_above_groups():
    """Strict tiers first, fairness within a tier."""
    pair = Pair()
    pair.step([make_enqueue(n, group="a") for n in range(4)])
    pair.step([make_enqueue(100 + n, group="b", tier=0) for n in range(4)])
    served = [group for group, _ in claims_in_order(pair, 4, 2)]
    assert served == ["b"] * 4
