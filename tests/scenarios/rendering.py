"""From outcomes, events and views of the machine to lines of a scenario."""

import json
import re
from typing import Any

from corvo.model import ids
from corvo.model import job as j
from corvo.model import outcome as o
from corvo.model.event import EVENT_NAMES, Event
from corvo.model.queue import TOTAL_NAMES
from corvo.model.view import BatchView, JobView, QueueView, WhyView
from tests.factories import START_MS
from tests.scenarios.grammar import Reader

STATES = j.STATE_NAMES


class Renderer:
    """Writes with the names of a scenario instead of ids, tokens and absolute times."""

    def __init__(self, reader: Reader) -> None:
        self.reader = reader

    def token(self, token: int) -> str:
        """Name a lease token: t1, t2 and so on in the order they are given out."""
        for name, value in self.reader.tokens.items():
            if value == token:
                return name
        name = f"t{len(self.reader.tokens) + 1}"
        self.reader.tokens[name] = token
        return name

    def at(self, at_ms: int) -> str:
        """Write a time relative to the start of the scenario."""
        return f"+{(at_ms - START_MS) / 1000:g}s"

    def words(self, text: str) -> str:
        """Replace ids by names in a text."""
        for prefix in (ids.JOB, ids.BATCH, ids.CHAIN):
            for found in re.findall(prefix + "[0-9A-Z]{26}", text):
                identifier = ids.parse_id(prefix, found)
                assert identifier is not None
                known = prefix == ids.JOB or identifier in self.reader.names
                name = self.reader.name(identifier) if known else prefix.rstrip("_")
                text = text.replace(found, name)
        return text

    def outcome(self, outcome: o.Outcome) -> str:
        """Write an outcome as one line."""
        match outcome:
            case o.Rejected():
                holder = f", {self.reader.name(outcome.holder)} has it" if outcome.holder else ""
                return f"refused {outcome.code}{holder}"
            case o.Replayed():
                return f"as before: {self.outcome(outcome.answer)}"
            case o.Fetched():
                return self.fetched(outcome)
            case o.Ended():
                later = f", next {self.at(outcome.next_ms)}" if outcome.next_ms else ""
                return f"{STATES[outcome.state]}{later}, {outcome.attempts_remaining} left"
            case o.Beaten():
                until = (
                    f" until {self.at(outcome.lease_until_ms)}" if outcome.lease_until_ms else ""
                )
                return f"{o.BEAT_NAMES[outcome.status]}{until}"
            case o.JobChanged():
                return f"{outcome.status}: {STATES[outcome.state]}"
            case o.QueueChanged():
                figures = {"active": outcome.active, "removed": outcome.removed}
                return " ".join([outcome.status, *nonzero(figures)])
            case o.LimitChanged():
                return outcome.status
            case o.Swept():
                return f"swept {outcome.count}{', more to do' if outcome.more else ''}"
            case _:
                return self.produced(outcome)

    def produced(self, outcome: o.Enqueued | o.Duplicate | o.BatchEnqueued) -> str:
        """Write the answer to a producer."""
        match outcome:
            case o.Enqueued():
                return f"enqueued {self.reader.name(outcome.id)}: {STATES[outcome.state]}"
            case o.Duplicate():
                result = "" if outcome.result is None else f", result {outcome.result.decode()}"
                replaced = ", payload replaced" if outcome.is_replaced else ""
                name = self.reader.name(outcome.id)
                return f"duplicate of {name}: {STATES[outcome.state]}{replaced}{result}"
            case o.BatchEnqueued():
                return "batch: " + "; ".join(self.produced(x) for x in outcome.results)

    def fetched(self, outcome: o.Fetched) -> str:
        """Write what a worker got."""
        claims = [
            f"{self.reader.name(x.spec.id)} of {x.queue} attempt {x.attempt}/{x.max_attempts}"
            f" {self.token(x.token)}"
            for x in outcome.claims
        ]
        line = "got " + "; ".join(claims) if claims else "got nothing"
        return line + (", more to look at" if outcome.more else "")

    def event(self, event: Event) -> str:
        """Write an event as one line."""
        about = self.reader.name(event.job) if event.job else event.queue
        data = event.data or {}
        details = " ".join(f"{name}={self.value(data[name])}" for name in sorted(data))
        return f"  . {EVENT_NAMES[event.type]} {about} {details}".rstrip()

    def value(self, value: Any) -> str:
        """Write a field of an event."""
        if isinstance(value, bytes):
            return self.reader.name(value) if len(value) == ids.ID_BYTES else value.decode()
        if isinstance(value, int) and value >= START_MS:
            return self.at(value) if value < 2 * START_MS else self.token(value)
        return self.words(value if isinstance(value, str) else json.dumps(value))

    def job(self, view: JobView) -> list[str]:
        """Write a job as it stands."""
        job, rare = view.job, view.job.rare or j.Rare()
        tier = j.TIER_NAMES[job.tier]
        attempts = f"attempt {job.attempt}/{job.max_attempts} run {job.run}"
        words = [f"{STATES[job.state]} in {view.queue}, {tier}, {attempts}"]
        if job.state in (j.SCHEDULED, j.RETRYING):
            words.append(f"due {self.at(job.due_ms)}")
        if job.state == j.ACTIVE:
            words.append(f"with {job.worker} until {self.at(job.lease_until_ms)}")
        if rare.cancel_ms:
            words.append("cancel requested")
        if rare.expire_ms:
            words.append(f"expires {self.at(rare.expire_ms)}")
        if view.blocked_by:
            words.append("waits for " + " ".join(self.reader.name(x) for x in view.blocked_by))
        for name, text in (("held", rare.hold_reason), ("dead", rare.dead_reason)):
            if text and STATES[job.state] == name:
                words.append(f"because {text}")
        for name in ("result", "checkpoint"):
            value = getattr(view, name)
            if value is not None:
                words.append(f"{name} {value.decode()}")
        errors = [f"  error {x.attempt}/{x.run} {x.error} ({x.worker})" for x in view.errors]
        return [", ".join(words), *errors]

    def queue(self, view: QueueView) -> list[str]:
        """Write a queue with everything that is not zero."""
        record = view.record
        flags = [name for name in ("paused", "draining") if getattr(record, name)]
        counts = nonzero(dict(zip(STATES, record.counts, strict=True)))
        rest = nonzero({"blocked": view.blocked, "locks": record.locks})
        totals = nonzero(dict(zip(TOTAL_NAMES, record.totals, strict=True)))
        return [" ".join([*flags, *counts, *rest, "| ever", *totals])]

    def batch(self, view: BatchView) -> list[str]:
        """Write the counts of a batch."""
        b = view.batch
        figures = {
            "total": b.total,
            "pending": b.pending,
            "succeeded": b.succeeded,
            "failed": b.failed,
            "cancelled": b.cancelled,
        }
        state = "finished" if b.finished_ms else "open"
        return [" ".join([state, *nonzero(figures)])]

    def why(self, view: WhyView) -> list[str]:
        """Write the gates a job does not pass."""
        lines = ["runnable" if view.is_runnable else "not runnable"]
        for gate in view.gates:
            if not gate.ok:
                when = f", changes {self.at(gate.changes_at_ms)}" if gate.changes_at_ms else ""
                lines.append(f"  {gate.gate}: {gate.value} of {gate.limit}{when}")
        return lines


def nonzero(figures: dict[str, int]) -> list[str]:
    """Write the figures that are not zero."""
    return [f"{name}={value}" for name, value in figures.items() if value]
