"""The job-state table: from, verb, to. The diagram in the docs is generated from it.

Who may ask is not here; what is asked in a state that is not listed is refused with INVALID_STATE
(operators) or NOT_ACTIVE / LEASE_LOST (workers).
"""

from typing import NamedTuple

from corvo.model.job import (
    ACTIVE,
    CANCELLED,
    COMPLETED,
    DEAD,
    HELD,
    PENDING,
    RETRYING,
    SCHEDULED,
    STATE_NAMES,
)


class Transition(NamedTuple):
    """One row: a verb takes a job from a state to another."""

    source: int
    verb: str
    target: int


TRANSITIONS = (
    Transition(SCHEDULED, "promote", PENDING),
    Transition(RETRYING, "promote", PENDING),
    Transition(PENDING, "fetch", ACTIVE),
    Transition(ACTIVE, "ack", COMPLETED),
    Transition(ACTIVE, "ack", CANCELLED),
    Transition(ACTIVE, "fail", RETRYING),
    Transition(ACTIVE, "fail", PENDING),
    Transition(ACTIVE, "fail", DEAD),
    Transition(ACTIVE, "fail", CANCELLED),
    Transition(ACTIVE, "release", PENDING),
    Transition(ACTIVE, "snooze", SCHEDULED),
    Transition(ACTIVE, "lose lease", PENDING),
    Transition(ACTIVE, "lose lease", DEAD),
    Transition(ACTIVE, "lose lease", CANCELLED),
    *(Transition(state, "expire", DEAD) for state in (PENDING, SCHEDULED, RETRYING, HELD)),
    *(Transition(state, "cancel", CANCELLED) for state in (PENDING, SCHEDULED, RETRYING, HELD)),
    Transition(ACTIVE, "cancel", ACTIVE),
    *(Transition(state, "retry", PENDING) for state in (DEAD, CANCELLED, COMPLETED)),
    *(Transition(state, "retry", PENDING) for state in (SCHEDULED, RETRYING)),
    Transition(DEAD, "requeue", PENDING),
    *(
        Transition(state, "move", state)
        for state in (PENDING, SCHEDULED, RETRYING, HELD, COMPLETED, DEAD, CANCELLED)
    ),
    *(Transition(state, "priority", state) for state in (PENDING, SCHEDULED, RETRYING, HELD)),
    *(Transition(state, "hold", HELD) for state in (PENDING, SCHEDULED, RETRYING, ACTIVE)),
    Transition(HELD, "approve", PENDING),
    Transition(HELD, "reject", DEAD),
)

ALLOWED: dict[str, tuple[int, ...]] = {
    verb: tuple(dict.fromkeys(row.source for row in TRANSITIONS if row.verb == verb))
    for verb in dict.fromkeys(row.verb for row in TRANSITIONS)
}


def diagram() -> str:
    """Render the table as a Mermaid state diagram."""
    rows = [
        f"    {STATE_NAMES[row.source]} --> {STATE_NAMES[row.target]}: {row.verb}"
        for row in TRANSITIONS
        if row.source != row.target
    ]
    return "\n".join(["stateDiagram-v2", *dict.fromkeys(rows)])
