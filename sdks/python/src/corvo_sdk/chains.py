"""Jobs that follow each other: each begins when the one before has completed.

The payload of a step gets `previous_job_id` and `previous_result` added; a task that wants them has
parameters of these names, with defaults.
"""

from typing import Any, Final, TypeVar

import msgspec
from msgspec import Raw

from corvo_sdk.task import TaskCall

R = TypeVar("R")

# What a step can have of its own; what its task does not say it inherits from the first.
_STEP_OPTIONS: Final = frozenset(
    "priority max_retries retry_backoff retry_base_delay retry_max_delay retry_jitter tags group"
    " limit_key limits cost".split()
)
STEPS_MAX: Final = 64


def chain(
    first: TaskCall[R],
    *rest: TaskCall[Any],
    on_failure: TaskCall[Any] | None = None,
    on_exit: TaskCall[Any] | None = None,
) -> TaskCall[R]:
    """Make one call of several, to be enqueued as any other; its handle is that of the first job.

    `on_failure` runs when a step ends without completing, `on_exit` when the chain has come to its
    end or a step has left it.
    """
    if 1 + len(rest) > STEPS_MAX:
        raise ValueError(f"a chain has at most {STEPS_MAX} steps, and these are {1 + len(rest)}")
    if "chain" in first.options:
        raise ValueError("a chain cannot begin with a chain; name its steps one by one")
    # The job itself is the first step, with everything it has.
    document: dict[str, Any] = {"steps": [{"queue": first.queue}, *map(_step, rest)]}
    for name, call in (("on_failure", on_failure), ("on_exit", on_exit)):
        if call is not None:
            document[name] = _step(call)
    return msgspec.structs.replace(first, options={**first.options, "chain": document})


def _step(call: TaskCall[Any]) -> dict[str, Any]:
    own = {name: value for name, value in call.options.items() if name != "trace"}
    refused = sorted(own.keys() - _STEP_OPTIONS)
    if refused:
        raise ValueError(f"a later step of a chain cannot have {refused[0]}: {call.task.name}")
    return {"queue": call.queue, "payload": Raw(call.payload), **own}
