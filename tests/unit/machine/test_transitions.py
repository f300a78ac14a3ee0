"""The table of transitions against the table of the contract."""

import pytest

from corvo.machine.transitions import ALLOWED, TRANSITIONS, diagram
from corvo.model.job import SETTLED, STATE_NAMES

CONTRACT = {
    "retry": "dead cancelled completed scheduled retrying",
    "requeue": "dead",
    "cancel": "pending scheduled retrying held active",
    "move": "pending scheduled retrying held completed dead cancelled",
    "priority": "pending scheduled retrying held",
    "hold": "pending scheduled retrying active",
    "approve": "held",
    "reject": "held",
}


@pytest.mark.parametrize("verb", CONTRACT)
def test_verbs_are_allowed_from_exactly_the_states_of_the_contract(verb: str):
    """Everything else is refused with INVALID_STATE."""
    assert set(CONTRACT[verb].split()) == {STATE_NAMES[state] for state in ALLOWED[verb]}


def test_only_operators_bring_a_settled_job_back():
    """A settled job stays settled unless somebody asks for it by name."""
    verbs = {row.verb for row in TRANSITIONS if row.source in SETTLED and row.source != row.target}
    assert verbs == {"retry", "requeue"}


def test_every_state_can_be_reached_and_left():
    """No state is a trap or an island."""
    changes = [row for row in TRANSITIONS if row.source != row.target]
    assert len(STATE_NAMES) == len({row.source for row in changes})
    assert len(STATE_NAMES) == len({row.target for row in changes})


def test_the_diagram_names_every_state():
    """The picture in the documents is drawn from the table."""
    assert [name for name in STATE_NAMES if name not in diagram()] == []
