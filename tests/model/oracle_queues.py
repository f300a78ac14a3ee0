"""Queues and named limits of the reference queue."""

from msgspec import UNSET, structs

from corvo.model import command as c
from corvo.model import job as j
from corvo.model import outcome as o
from corvo.model.queue import DEFAULT_SETTINGS, Limit
from tests.model.oracle_state import World, refuse

CLEARED = (j.PENDING, j.SCHEDULED, j.RETRYING)


def pause_queue(world: World, command: c.PauseQueue) -> o.Outcome:
    """Hand out nothing."""
    world.queue(command.queue).paused = True
    return o.QueueChanged("paused", active=world.active(command.queue))


def resume_queue(world: World, command: c.ResumeQueue) -> o.Outcome:
    """Hand out again."""
    queue = world.queue(command.queue)
    queue.paused = queue.draining = False
    return o.QueueChanged("resumed", active=world.active(command.queue))


def drain_queue(world: World, command: c.DrainQueue) -> o.Outcome:
    """Pause, and say how much is still being worked on."""
    queue = world.queues.get(command.queue)
    if queue is None:
        return refuse(o.NOT_FOUND)
    queue.paused = queue.draining = True
    return o.QueueChanged("draining", active=world.active(command.queue))


def doom(world: World, queue: str, states: tuple[int, ...]) -> int:
    """Take jobs out of sight at once; `StepOperations` settles them."""
    jobs = [job for job in world.visible(queue) if job.state in states]
    for job in jobs:
        job.is_doomed = True
    return len(jobs)


def clear_queue(world: World, command: c.ClearQueue) -> o.Outcome:
    """Remove what waits; not what is held, active or settled."""
    if command.queue not in world.queues:
        return refuse(o.NOT_FOUND)
    removed = doom(world, command.queue, CLEARED)
    active = world.active(command.queue)
    return o.QueueChanged("cleared", active, removed, command.operation_id)


def delete_queue(world: World, command: c.DeleteQueue) -> o.Outcome:
    """Remove a queue and everything in it."""
    if command.queue not in world.queues:
        return refuse(o.NOT_FOUND)
    active = world.active(command.queue)
    removed = doom(world, command.queue, tuple(range(j.STATE_COUNT)))
    del world.queues[command.queue]
    for key in [key for key in world.locks if key[0] == command.queue]:
        del world.locks[key]
    return o.QueueChanged("deleted", active, removed, command.operation_id)


def configure_queue(world: World, command: c.ConfigureQueue) -> o.Outcome:
    """Change the settings that are named; null removes one."""
    queue = world.queue(command.queue)
    changed = {}
    for name, default in structs.asdict(DEFAULT_SETTINGS).items():
        value = getattr(command.patch, name)
        if value is not UNSET:
            changed[name] = default if value is None else value
    old = queue.settings
    queue.settings = new = structs.replace(old, **changed)
    if new.rate != old.rate:
        queue.bucket = None
    before = (old.aging_ms, old.key_concurrency, old.key_rate)
    has_pending = world.counts(command.queue)[j.PENDING] > 0
    if has_pending and before != (new.aging_ms, new.key_concurrency, new.key_rate):
        queue.is_reindexing = True
    return o.QueueChanged("ok", active=world.active(command.queue))


def set_limit(world: World, command: c.SetLimit) -> o.Outcome:
    """Create or replace a named limit."""
    world.limits[command.name] = Limit(command.name, command.max, command.rate, world.now_ms)
    world.buckets.pop(("", command.name), None)
    return o.LimitChanged("ok")


def delete_limit(world: World, command: c.DeleteLimit) -> o.Outcome:
    """Remove a named limit."""
    if world.limits.pop(command.name, None) is None:
        return refuse(o.NOT_FOUND)
    world.buckets.pop(("", command.name), None)
    return o.LimitChanged("deleted")
