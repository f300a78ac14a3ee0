"""Invariants of schedules; part of `audit`."""

from corvo.keys import codec, space
from corvo.machine.picture import Picture, pairs
from corvo.model import schedule as sc


def schedules(picture: Picture) -> list[str]:
    """A schedule has both halves, its name, and its place in the index exactly when it stands."""
    found: list[str] = []
    store = picture.store
    specs = {key[1:]: codec.decode_schedule_spec(v) for key, v in pairs(store, space.SCHEDULE_SPEC)}
    records = {key[1:]: codec.decode_schedule(value) for key, value in pairs(store, space.SCHEDULE)}
    names = {key[1:]: key[1:3] + value for key, value in pairs(store, space.SCHEDULE_NAME)}
    due = {key for key, _ in pairs(store, space.SCHEDULE_DUE)}
    if specs.keys() != records.keys():
        return [f"schedules have {len(specs)} specs and {len(records)} records, not the same"]
    expected = {key[:2] + spec.name.encode(): key for key, spec in specs.items()}
    if expected != names or len(expected) != len(specs):
        found.append(f"names of schedules lead to {names}, expected {expected}")
    stands: set[bytes] = set()
    for key, record in records.items():
        if key != space.schedule_key(record.ns, record.id)[1:]:
            found.append(f"schedule {record.id.hex()} lies under another key")
        if record.paused_ms and record.next_ms:
            found.append(f"schedule {record.id.hex()} is paused and stands at a slot")
        if record.next_ms:
            due_ms = sc.due_ms(record.id, specs[key], record.next_ms)
            stands.add(space.schedule_due_key(due_ms, record.ns, record.id))
    if stands != due:
        found.append(f"schedules stand at {sorted(stands)}, the index says {sorted(due)}")
    return found


def slots(picture: Picture) -> list[str]:
    """The job of a slot has the id derived from it, so that there can be only one."""
    return sorted(
        f"job {job_id.hex()} is not the job of its slot"
        for job_id, spec in picture.specs.items()
        if spec.schedule_id is not None
        and spec.scheduled_ms
        and job_id != sc.slot_job_id(spec.schedule_id, spec.scheduled_ms)
    )
